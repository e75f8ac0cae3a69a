// What tests look at on a page.

/** Left, top, right and bottom of every visible element. */
function boxes(selector) {
  return [...document.querySelectorAll(selector)].map(e => e.getBoundingClientRect())
    .filter(r => r.width * r.height).map(r => [r.left, r.top, r.right, r.bottom]);
}

/** Text, colour and background of every visible piece of text inside, placeholders too. */
function colours(selector) {
  const rgb = text => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = e => {
    const own = rgb(getComputedStyle(e).backgroundColor);
    return own[3] === 1 || !e.parentElement ? own : over(own, ground(e.parentElement));
  };
  const all = [...document.querySelectorAll(selector)].flatMap(root => [root, ...root.querySelectorAll('*')])
    .filter(e => e.getBoundingClientRect().height);
  const written = all.flatMap(e => [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim())
    .map(n => [n.data.trim(), e, getComputedStyle(e).color]));
  const hinted = all.filter(e => e.placeholder)
    .map(e => [e.placeholder, e, getComputedStyle(e, '::placeholder').color]);
  return [...written, ...hinted].map(([text, e, colour]) => {
    const below = ground(e);
    return [text, over(rgb(colour), below).slice(0, 3), below.slice(0, 3)];
  });
}

/** Value -> ticked of every answer. */
function candidates() {
  const boxes = [...document.querySelectorAll('.cands input[type=checkbox]')];
  return Object.fromEntries(boxes.map(e => [e.name, e.checked]));
}

/** Key -> value of every answer whose label shows a key. */
function keys() {
  return Object.fromEntries([...document.querySelectorAll('.cands .lsf-choice')].flatMap(e => {
    const shown = e.innerText.match(/\[(.)\]/);
    return shown ? [[shown[1], e.querySelector('input').name]] : [];
  }));
}

/** Whether anything changes its size or colour. */
function moving() {
  return document.getAnimations().some(animation => animation instanceof CSSTransition);
}

/** The columns of the list of tasks. */
function columns() {
  return [...document.querySelectorAll('.lsf-table-head [data-id]')].map(e => e.dataset.id.slice(6));
}

/** How many elements lie beyond the page's edge, those inside of what scrolls apart. */
function beyond() {
  return [...document.querySelectorAll('body *')].filter(e => !e.closest('svg')
    && (!e.closest('.scroll') || e.matches('.scroll'))
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length;
}

function focused(selector) { return document.querySelector(selector).contains(document.activeElement); }
