"""How blocks of rows are read from each kind of file; each optional library is imported when its files are read."""
