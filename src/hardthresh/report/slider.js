(() => {
  const section = document.getElementById("models");
  const slider = section.querySelector("input");
  const models = [...section.querySelectorAll(".model")];
  const show = () => {
    models.forEach((model, place) => { model.hidden = place !== Number(slider.value); });
    const says = models[slider.value].dataset.says;
    slider.setAttribute("aria-valuetext", says);
    section.querySelector("output").textContent = says;
  };
  slider.addEventListener("input", show);
  section.querySelector(".slider").hidden = false;
  show();
})();
