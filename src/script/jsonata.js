// Runs behind JSONata's own source, in the same script. Its value is the function that jsonata.cc
// calls: (request, bindings, input) => [kind, ...]. See there for the kinds.
((jsonata) => {
  'use strict';

  const MAX_COMPILED = 1000;
  const compiled = new Map();

  // Time and randomness come with the request, so that the caller controls them.
  let now = 0;
  let random = () => 0;
  const RealDate = Date;
  globalThis.Date = class Date extends RealDate {
    constructor(...parts) {
      super(...(parts.length === 0 ? [now] : parts));
    }
    static now() {
      return now;
    }
  };
  Math.random = () => random();

  // Where JSONata looks for them.
  globalThis.window = {atob, btoa};

  // Numbers in [0, 1) determined by the seed: sfc32, four words of state.
  function generator(seed) {
    const bits = new Uint32Array(new Float64Array([seed]).buffer);
    let [a, b, c, d] = [bits[0], bits[1], 0x9e3779b9, 1];
    const word = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = ((c << 21) | (c >>> 11)) + t | 0;
      return t >>> 0;
    };
    for (let i = 0; i < 12; ++i) word();
    return () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
  }

  // JSONata adds the message.
  function fail(token, index, value) {
    throw {code: 'T0410', token, index, value};
  }

  // What Step Functions adds to JSONata.
  const added = [
    ['partition', '<an:a<a>>', (items, size) => {
      if (items === undefined || size === undefined) return undefined;
      const width = Math.floor(size);
      if (width < 1) fail('partition', 2, size);
      const parts = [];
      for (let at = 0; at < items.length; at += width) parts.push(items.slice(at, at + width));
      return parts;
    }],
    ['range', '<nnn:a<n>>', (first, last, step) => {
      if (first === undefined || last === undefined || step === undefined) return undefined;
      if (step === 0) fail('range', 3, step);
      const values = [];
      const count = Math.floor((last - first) / step);
      for (let i = 0; i <= count; ++i) values.push(first + i * step);
      // As with JSONata's own [a..b], a range of one number is that number.
      Object.defineProperty(values, 'sequence', {value: true});
      return values;
    }],
    ['hash', '<ss:s>', (text, algorithm) => {
      if (text === undefined || algorithm === undefined) return undefined;
      const digest = host(algorithm + '\n' + text);
      return digest === '' ? fail('hash', 2, algorithm) : digest;
    }],
    ['random', '<n?:n>', (seed) => (seed === undefined ? random() : generator(seed)())],
    ['uuid', '<:s>', () => {
      const digits = Array.from({length: 32}, () => Math.floor(random() * 16));
      digits[12] = 4;
      digits[16] = 8 + (digits[16] % 4);
      const hex = digits.map((digit) => digit.toString(16)).join('');
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    }],
    ['parse', '<s:x>', (text) => (text === undefined ? undefined : JSON.parse(text))],
  ];

  function compile(text) {
    let expression = compiled.get(text);
    if (expression !== undefined) return expression;
    expression = jsonata(text);
    for (const [name, signature, call] of added) {
      expression.registerFunction(name, call, signature);
    }
    // Expressions must be known before anything runs: Step Functions has no $eval.
    expression.assign('eval', undefined);
    if (compiled.size >= MAX_COMPILED) compiled.delete(compiled.keys().next().value);
    compiled.set(text, expression);
    return expression;
  }

  function failed(error) {
    if (typeof error !== 'object' || error === null) return ['error', String(error), 0];
    const code = error.code === undefined ? '' : error.code + ': ';
    return ['error', code + error.message, error.position ?? 0];
  }

  // What JSON cannot say, or would say otherwise: a kind of answer; none if all is well.
  function unspeakable(value) {
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return ['error', 'D1001: Number out of range: ' + value, 0];
    }
    if (typeof value === 'function') return ['function'];
    if (typeof value !== 'object' || value === null) return undefined;
    if (value._jsonata_lambda || value._jsonata_function) return ['function'];
    for (const key in value) {
      const found = unspeakable(value[key]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  return async (request, bindings, input) => {
    now = request.now;
    random = generator(request.seed);
    try {
      const expression = compile(request.expression);
      if (request.check) return ['value'];
      const value = await expression.evaluate(request.has_input ? input : undefined, bindings);
      if (value === undefined) return ['undefined'];
      return unspeakable(value) ?? ['value', value];
    } catch (error) {
      // The engine's own: no memory. It knows better what to say.
      if (error instanceof InternalError) throw error;
      return failed(error);
    }
  };
})(jsonata);
