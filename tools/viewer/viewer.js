// SPDX-License-Identifier: Apache-2.0
'use strict';
// Draws what forge-inspect laid out. Strings of the model reach the page as text nodes and
// attributes' values only.
(() => {
  addEventListener('error', () => { document.documentElement.dataset.errors++; });
  const model = JSON.parse(document.getElementById('data').textContent);
  const get = id => document.getElementById(id);
  const svg = get('graph'), scene = get('scene'), panel = get('panel');
  const view = { x: 0, y: 0, scale: 1 };
  const state = { fn: -1, node: -1, boxes: [], lines: [], near: [], before: [] };

  // ---- elements ----------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) {
      if (typeof v === 'function') e.addEventListener(k, v);
      else e.setAttribute(k, v);
    }
    e.append(...children.filter(c => c !== null && c !== ''));
    return e;
  }
  function draw(tag, attributes, text) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  const short = (text, letters) => text.length > letters ? text.slice(0, letters - 1) + '…' : text;
  const percent = share => `${(100 * share).toFixed(1)} %`;
  const digits = v => typeof v === 'number' ? String(Number(v.toPrecision(6))) : v;

  // ---- the picture -------------------------------------------------------------------------

  function apply() {
    scene.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.scale})`);
    svg.classList.toggle('far', view.scale < 0.55);
    svg.classList.toggle('farther', view.scale < 0.22);
  }
  function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.02, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    apply();
  }
  // The whole graph.
  function fit() {
    const [width, height] = model.functions[state.fn].size;
    view.scale = Math.min(1, svg.clientWidth / width, svg.clientHeight / height);
    view.x = (svg.clientWidth - width * view.scale) / 2;
    view.y = (svg.clientHeight - height * view.scale) / 2;
    apply();
  }
  // Its beginning, large enough to be read.
  function begin() {
    const [width] = model.functions[state.fn].size;
    view.scale = Math.min(1, Math.max(0.6, svg.clientWidth / width));
    const first = model.functions[state.fn].nodes[0];
    const middle = width * view.scale <= svg.clientWidth || !first ? width / 2 : first.box[0] + first.box[2] / 2;
    view.x = svg.clientWidth / 2 - middle * view.scale;
    view.y = 8;
    apply();
  }
  function center(index) {
    const [x, y, w, h] = model.functions[state.fn].nodes[index].box;
    if (view.scale < 0.6) view.scale = 0.9;
    view.x = svg.clientWidth / 2 - (x + w / 2) * view.scale;
    view.y = svg.clientHeight / 2 - (y + h / 2) * view.scale;
    apply();
  }

  const headHeight = 24, lineHeight = 15;
  function drawNode(node, index) {
    const [x, y, w, h] = node.box;
    const g = draw('g', {
      class: `node ${node.kind}${node.bodies ? ' body' : ''}`, transform: `translate(${x} ${y})`,
      'data-index': index
    });
    g.append(draw('rect', { class: 'box', width: w, height: h }));
    const r = 7, low = Math.min(headHeight, h);
    g.append(draw('path', {
      class: 'head', d: `M0 ${low}V${r}Q0 0 ${r} 0H${w - r}Q${w} 0 ${w} ${r}V${low}` + (h > low ? 'Z' : `V${h - r}Q${w} ${h} ${w - r} ${h}H${r}Q0 ${h} 0 ${h - r}Z`)
    }));
    if (node.share !== undefined) {
      g.append(draw('rect', { class: 'heat', x: 1, y: h - 4, height: 3, width: Math.max(1, (w - 2) * node.share / state.most) }));
    }
    g.append(draw('text', { class: 'op', x: w / 2, y: 16 }, short(node.op, (w - 10) / 7.7 | 0)));
    node.lines.forEach(([kind, text], i) => g.append(draw('text',
      { class: `line ${kind}`, x: 10, y: headHeight + 13 + i * lineHeight }, short(text, (w - 16) / 5.9 | 0))));
    g.append(draw('title', {}, [node.op, ...node.lines.map(l => l[1])].join('\n')));
    return g;
  }
  // A smooth line through points, vertical at each.
  function curve(points) {
    let d = `M${points[0]} ${points[1]}`;
    for (let i = 2; i < points.length; i += 2) {
      const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
      const middle = (y0 + y1) / 2;
      d += x0 === x1 ? `L${x1} ${y1}` : `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
    }
    return d;
  }
  function drawEdge([from, to, type, points, label]) {
    const g = draw('g', { class: 'edge' });
    if (points.length) {
      g.append(draw('path', { d: curve(points) }), draw('title', {}, type));
      // Beside the line, where it leaves the box: lines of one value share it.
      if (label) g.append(draw('text', { x: points[0] + 5, y: points[1] + 13 }, label));
      return g;
    }
    // Too long to draw: each end names the other.
    const nodes = model.functions[state.fn].nodes;
    for (const [end, other, down] of [[from, to, true], [to, from, false]]) {
      const [x, y, w, h] = nodes[end].box;
      // Those of one box stand above one another.
      const key = `${end} ${down}`, line = state.stubs[key] = (state.stubs[key] ?? -1) + 1;
      const stub = draw('text', { class: 'stub', x: x + w / 2, y: down ? y + h + 24 + 10 * line : y - 6 - 10 * line },
        `${down ? '↓' : '↑'} ${short(nodes[other].title || nodes[other].op, 24)}`);
      stub.addEventListener('click', () => { select(other); center(other); });
      g.append(stub);
    }
    return g;
  }
  function show(index, node = -1) {
    const f = model.functions[index];
    if (!f) return;
    state.fn = index;
    get('functions').value = index;
    state.most = Math.max(1e-9, ...f.nodes.map(n => n.share || 0));
    state.stubs = {};
    state.boxes = f.nodes.map(drawNode);
    state.lines = f.edges.map(drawEdge);
    get('nodes').replaceChildren(...state.boxes);
    get('edges').replaceChildren(...state.lines);
    get('back').disabled = state.before.length === 0;
    begin();
    select(node);
    if (node >= 0) center(node);
  }
  function go(index, node = -1) {
    if (index !== state.fn) state.before.push([state.fn, state.node]);
    show(index, node);
  }

  // ---- the panel ---------------------------------------------------------------------------

  const heading = text => make('h3', {}, text);
  function row(text, note, click) {
    const b = make('button', { class: 'row' }, text, ' ', make('small', { class: 'type' }, note || ''));
    if (!click) return make('p', { class: 'row' }, ...b.childNodes);
    b.addEventListener('click', click);
    return b;
  }
  function operand(o) {
    const label = `${o.role}: ${o.name}`;
    if (o.variable !== undefined) return row(label, o.type, () => showWeight(o.variable));
    if (o.from !== undefined) return row(label, o.type, () => { select(o.from); center(o.from); });
    return row(label, o.type || '');
  }
  function readers(index) {
    const f = model.functions[state.fn];
    return f.edges.filter(e => e[0] === index).map(e =>
      row(f.nodes[e[1]].op, f.nodes[e[1]].title, () => { select(e[1]); center(e[1]); }));
  }
  function details(index) {
    const node = model.functions[state.fn].nodes[index];
    const parts = [make('h2', {}, node.op), make('p', { class: 'soft' }, node.kind)];
    if (node.kernel) {
      const facts = [['step', node.step], ['kernel', node.kernel]];
      if (node.ms !== undefined) facts.push(['time', `${digits(node.ms)} ms`], ['share', percent(node.share)]);
      parts.push(heading('Runs as'), make('table', { id: 'kernel' }, ...facts.map(
        ([k, v]) => make('tr', {}, make('td', {}, k), make('td', {}, make('code', {}, String(v)))))));
    }
    if (node.formula) parts.push(make('p', {}, make('code', {}, node.formula)));
    if (node.from) {
      parts.push(heading('Provenance'), make('p', { id: 'provenance' }, node.from));
      if (node.pass) parts.push(make('p', { class: 'soft' }, `made by the pass ${node.pass}`));
    }
    if (node.bodies) {
      parts.push(heading('Regions'), ...node.bodies.map(b =>
        row(`Open ${model.functions[b].name}`, `${model.functions[b].nodes.length} boxes`, () => go(b))));
    }
    if (node.attributes && node.attributes.length) {
      parts.push(heading('Attributes'), make('table', { id: 'attributes' }, ...node.attributes.map(
        ([name, value, doc]) => make('tr', { title: doc }, make('td', {}, name),
          make('td', {}, make('code', {}, value))))));
    }
    if (node.in && node.in.length) parts.push(heading('Reads'), ...node.in.map(operand));
    if (node.out) parts.push(heading('Makes'), ...node.out.map(o => row(o.name, o.type)));
    const after = readers(index);
    if (after.length) parts.push(heading('Read by'), ...after);
    panel.replaceChildren(...parts);
  }
  function overview() {
    const f = model.functions[state.fn];
    const counts = {};
    for (const n of f.nodes) if (n.attributes) counts[n.op] = (counts[n.op] || 0) + 1;
    const parts = [make('h2', {}, f.name), make('p', { class: 'soft' },
      `${f.nodes.filter(n => n.attributes).length} nodes, ${f.edges.length} edges`)];
    if (f.leftOut) parts.push(make('p', {}, `${f.leftOut} nodes more are left out: the page would grow too large.`));
    parts.push(make('p', { class: 'soft' }, 'Drag to move, turn the wheel to zoom, click a box for what it is; a dashed box holds a region.'));
    if (model.metadata.length) {
      parts.push(heading('Metadata'), make('table', {}, ...model.metadata.map(
        ([k, v]) => make('tr', {}, make('td', {}, k), make('td', {}, v)))));
    }
    const timed = [...f.nodes.keys()].filter(i => f.nodes[i].ms !== undefined);
    if (timed.length) {
      timed.sort((a, b) => f.nodes[b].ms - f.nodes[a].ms);
      parts.push(heading(`Slowest of ${digits(model.totalMs)} ms`), make('div', { id: 'slowest' }, ...timed.slice(0, 12).map(i =>
        row(`${digits(f.nodes[i].ms)} ms  ${percent(f.nodes[i].share)}`, `${f.nodes[i].op}  ${f.nodes[i].kernel}`,
          () => { select(i); center(i); }))));
    }
    parts.push(heading('Operators'), make('table', {}, ...Object.entries(counts).sort((a, b) => b[1] - a[1]).map(
      ([op, n]) => make('tr', {}, make('td', {}, op), make('td', {}, String(n))))));
    panel.replaceChildren(...parts);
  }
  function histogram(counts) {
    const chart = draw('svg', { viewBox: `0 0 ${counts.length} 30`, preserveAspectRatio: 'none', 'aria-label': 'histogram' });
    const most = Math.max(...counts, 1);
    counts.forEach((n, i) => chart.append(
      draw('rect', { x: i + 0.06, y: 30 - 30 * n / most, width: 0.88, height: 30 * n / most })));
    return chart;
  }
  function showWeight(index) {
    const v = model.variables[index], s = v.summary;
    const parts = [make('h2', {}, v.name), make('p', {}, `${v.role} `, make('code', {}, v.type))];
    if (v.note) parts.push(make('p', { class: 'soft' }, v.note));
    if (s) {
      const facts = [['min', s.min], ['max', s.max], ['mean', s.mean], ['deviation', s.deviation],
        ['elements', s.elements], ['zeros', s.zeros], ['not finite', s.not_finite]];
      if (s.looked_at < s.elements) facts.push(['looked at', s.looked_at]);
      parts.push(make('table', { id: 'statistics' }, ...facts.map(
        ([k, n]) => make('tr', {}, make('td', {}, k), make('td', {}, make('code', {}, digits(n)))))));
      if (s.histogram.length) {
        parts.push(heading('Histogram'), histogram(s.histogram),
          make('p', { class: 'soft' }, `${digits(s.min)} to ${digits(s.max)}`));
      }
      parts.push(heading('First values'), make('p', {}, make('code', {}, s.first.map(digits).join('  '))));
    }
    parts.push(make('button', { click: listWeights }, 'All weights'));
    panel.replaceChildren(...parts);
  }
  function listWeights() {
    const most = 500;
    panel.replaceChildren(make('h2', {}, `${model.variables.length} weights`),
      ...model.variables.slice(0, most).map((v, i) => row(v.name, v.type, () => showWeight(i))),
      model.variables.length > most ? make('p', { class: 'soft' }, 'Search for the others by name.') : '');
  }
  function select(index) {
    const f = model.functions[state.fn];
    if (state.boxes[state.node]) state.boxes[state.node].classList.remove('selected');
    state.near.forEach(e => e.classList.remove('near'));
    state.near = [];
    state.node = f.nodes[index] ? index : -1;
    if (state.node < 0) return overview();
    state.boxes[index].classList.add('selected');
    state.near = state.lines.filter((_, i) => f.edges[i][0] === index || f.edges[i][1] === index);
    state.near.forEach(e => e.classList.add('near'));
    details(index);
  }

  // ---- search ------------------------------------------------------------------------------

  function matches(words) {
    const most = 60, found = [];
    const fits = text => words.every(w => text.toLowerCase().includes(w));
    const order = [state.fn, ...model.functions.keys()].filter((f, i, all) => all.indexOf(f) === i);
    for (const fn of order) {
      model.functions[fn].nodes.forEach((n, i) => {
        const outs = (n.out || []).map(o => o.name).join(' ');
        const lines = n.lines.map(l => l[1]).join(' ');
        if (found.length < most && fits(`${n.op} ${lines} ${n.from || ''} ${outs}`)) {
          found.push({ text: [n.op, n.title, n.kernel || ''].join('  '), fn, node: i });
        }
      });
    }
    model.variables.forEach((v, i) => {
      if (found.length < most && fits(v.name)) found.push({ text: `weight  ${v.name}`, weight: i });
    });
    return found;
  }
  function open(hit) {
    get('found').replaceChildren();
    if (hit.weight !== undefined) return showWeight(hit.weight);
    if (hit.fn !== state.fn) return go(hit.fn, hit.node);
    select(hit.node);
    center(hit.node);
  }
  let hits = [], chosen = 0;
  function search() {
    const words = get('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    state.boxes.forEach(b => b.classList.remove('found'));
    hits = words.length ? matches(words) : [];
    chosen = 0;
    hits.forEach(h => { if (h.fn === state.fn) state.boxes[h.node].classList.add('found'); });
    get('found').replaceChildren(...hits.map((h, i) => make('li',
      { class: i === chosen ? 'chosen' : '', mousedown: () => open(h) }, h.text)));
  }
  get('search').addEventListener('input', search);
  get('search').addEventListener('blur', () => get('found').replaceChildren());
  get('search').addEventListener('keydown', e => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && hits.length) {
      chosen = (chosen + step + hits.length) % hits.length;
      [...get('found').children].forEach((li, i) => li.classList.toggle('chosen', i === chosen));
      e.preventDefault();
    }
    if (e.key === 'Enter' && hits[chosen]) open(hits[chosen]);
    if (e.key === 'Escape') { get('search').value = ''; search(); svg.focus(); }
  });

  // ---- moving ------------------------------------------------------------------------------

  const fingers = new Map();
  let moved = 0;
  svg.addEventListener('pointerdown', e => {
    fingers.set(e.pointerId, e);
    moved = 0;
  });
  svg.addEventListener('pointermove', e => {
    const last = fingers.get(e.pointerId);
    if (!last) return;
    moved += Math.abs(e.clientX - last.clientX) + Math.abs(e.clientY - last.clientY);
    if (moved > 4 && !svg.hasPointerCapture(e.pointerId)) svg.setPointerCapture(e.pointerId);
    const others = [...fingers.values()].filter(f => f.pointerId !== e.pointerId);
    if (others.length === 0) {
      view.x += e.clientX - last.clientX;
      view.y += e.clientY - last.clientY;
      svg.classList.add('moving');
      apply();
    } else {
      const apart = f => Math.hypot(f.clientX - others[0].clientX, f.clientY - others[0].clientY);
      const area = svg.getBoundingClientRect();
      zoom(apart(e) / Math.max(1, apart(last)), (e.clientX + others[0].clientX) / 2 - area.left,
        (e.clientY + others[0].clientY) / 2 - area.top);
    }
    fingers.set(e.pointerId, e);
  });
  for (const end of ['pointerup', 'pointercancel']) {
    svg.addEventListener(end, e => { fingers.delete(e.pointerId); svg.classList.remove('moving'); });
  }
  svg.addEventListener('click', e => {
    if (moved > 4) return;
    const box = e.target.closest('.node');
    if (box) select(Number(box.dataset.index));
    else if (!e.target.closest('.stub')) select(-1);
  });
  svg.addEventListener('dblclick', e => {
    const box = e.target.closest('.node.body');
    if (box) go(model.functions[state.fn].nodes[box.dataset.index].bodies[0]);
  });
  svg.addEventListener('wheel', e => {
    e.preventDefault();
    const area = svg.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), e.clientX - area.left, e.clientY - area.top);
  }, { passive: false });
  addEventListener('keydown', e => {
    if (e.target.closest('input, select')) return;
    if (e.key === '/') { e.preventDefault(); get('search').focus(); }
    if (e.key === '+' || e.key === '=') zoom(1.3);
    if (e.key === '-') zoom(1 / 1.3);
    if (e.key === '0') fit();
  });
  get('larger').addEventListener('click', () => zoom(1.3));
  get('smaller').addEventListener('click', () => zoom(1 / 1.3));
  get('fit').addEventListener('click', fit);
  get('weights').addEventListener('click', listWeights);
  get('back').addEventListener('click', () => { const last = state.before.pop(); if (last) show(...last); });
  get('functions').addEventListener('change', e => go(Number(e.target.value)));
  get('theme').addEventListener('click', () => {
    const root = document.documentElement, next = { undefined: 'dark', dark: 'light' }[root.dataset.theme];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
  });

  // ---- beginning ---------------------------------------------------------------------------

  // MODEL.html#function=main&node=3&theme=dark opens there; so do weight=N, search=WORDS and fit=1.
  document.title = get('title').textContent = model.title;
  get('title').title = `${model.title}, by forge-inspect ${model.version}`;
  get('functions').append(...model.functions.map((f, i) =>
    make('option', { value: i }, (f.body ? '\u00a0\u00a0' : '') + f.name)));
  const started = performance.now();
  const asked = new URLSearchParams(location.hash.slice(1));
  if (['dark', 'light'].includes(asked.get('theme'))) document.documentElement.dataset.theme = asked.get('theme');
  const start = Math.max(0, model.functions.findIndex(f => f.name === asked.get('function')));
  show(start, asked.has('node') ? Number(asked.get('node')) : -1);
  if (asked.has('fit')) fit();
  if (model.variables[asked.get('weight')]) showWeight(Number(asked.get('weight')));
  if (asked.has('search')) { get('search').value = asked.get('search'); search(); }
  document.documentElement.dataset.drawn = Math.round(performance.now() - started);
  document.documentElement.dataset.ready = 'yes';
})();
