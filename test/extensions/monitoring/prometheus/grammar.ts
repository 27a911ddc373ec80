/** A strict reader of the text format of Prometheus, version 0.0.4, written from its grammar. It takes nothing that a lenient reader would let pass. */

interface Sample {
    readonly name: string;
    readonly labels: ReadonlyMap<string, string>;
    readonly value: number;
}

export interface Family {
    readonly name: string;
    readonly type: string;
    readonly help: string;
    readonly samples: readonly Sample[];
}

const nameForm = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const labelForm = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const types = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped']);

/** @throws Error that names the line */
export function readExposition(text: string): Family[] {
    if (text !== '' && !text.endsWith('\n')) {
        throw new Error('The last line has no end');
    }
    const families = new Map<
        string,
        { name: string; type: string | null; help: string | null; samples: Sample[] }
    >();
    const seen = new Set<string>();
    let current: string | null = null;
    for (const [index, line] of text.split('\n').slice(0, -1).entries()) {
        const fail = (what: string): never => {
            throw new Error(`Line ${index + 1}: ${what}: ${line}`);
        };
        const name = line.startsWith('#') ? (line.split(' ')[2] ?? '') : (/^[^{ ]*/.exec(line)?.[0] ?? '');
        if (!nameForm.test(name)) {
            fail('no metric name');
        }
        // All lines of one metric stand together.
        if (name !== current && families.has(name)) {
            fail('its family was left before');
        }
        current = name;
        const family = families.get(name) ?? { name, type: null, help: null, samples: [] };
        families.set(name, family);
        if (line.startsWith('# HELP ')) {
            if (family.help !== null || family.samples.length > 0) {
                fail('a second HELP, or one after samples');
            }
            family.help = unescape(line.slice(`# HELP ${name} `.length), false, fail);
        } else if (line.startsWith('# TYPE ')) {
            const type = line.slice(`# TYPE ${name} `.length);
            if (family.type !== null || family.samples.length > 0 || !types.has(type)) {
                fail('a second TYPE, one after samples, or an unknown one');
            }
            family.type = type;
        } else if (line.startsWith('#')) {
            fail('a comment that is none of the two');
        } else {
            const sample = readSample(line, name, fail);
            const key = `${name} ${JSON.stringify([...sample.labels].sort())}`;
            if (seen.has(key)) {
                fail('twice');
            }
            seen.add(key);
            family.samples.push(sample);
        }
    }
    return [...families.values()].map(({ name, type, help, samples }) => {
        if (type === null || help === null || help === '' || samples.length === 0) {
            throw new Error(`${name} lacks TYPE, HELP or samples`);
        }
        if ((type === 'counter') !== name.endsWith('_total')) {
            throw new Error(`${name} is a ${type}, and counters alone end in _total`);
        }
        const orders = new Set(samples.map(({ labels }) => [...labels.keys()].join()));
        if (orders.size > 1) {
            throw new Error(`${name} has labels in several orders`);
        }
        if (type === 'counter' && samples.some(({ value }) => !(value >= 0))) {
            throw new Error(`${name} is a counter below zero`);
        }
        return { name, type, help, samples };
    });
}

function readSample(line: string, name: string, fail: (what: string) => never): Sample {
    const labels = new Map<string, string>();
    let at = name.length;
    if (line[at] === '{') {
        at += 1;
        for (;;) {
            const label = /^[^=]*/.exec(line.slice(at))?.[0] ?? '';
            if (
                !labelForm.test(label) ||
                label.startsWith('__') ||
                labels.has(label) ||
                line.slice(at + label.length, at + label.length + 2) !== '="'
            ) {
                fail('a bad label');
            }
            at += label.length + 2;
            const value = /^(?:[^"\\]|\\.)*/.exec(line.slice(at))?.[0] ?? '';
            labels.set(label, unescape(value, true, fail));
            at += value.length;
            const [quote, next] = [line[at], line[at + 1]];
            if (quote !== '"' || (next !== ',' && next !== '}')) {
                fail('a label without an end');
            }
            at += 2;
            if (next === '}') {
                break;
            }
        }
    }
    const value = line.slice(at);
    if (!/^ (?:[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?|NaN|[+-]Inf)$/.test(value)) {
        fail('no value after one space');
    }
    const text = value.slice(1);
    return { name, labels, value: text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text) };
}

function unescape(text: string, quoted: boolean, fail: (what: string) => never): string {
    return text.replace(/\\(.?)/g, (_all, what: string) =>
        what === '\\' ? '\\' : what === 'n' ? '\n' : quoted && what === '"' ? '"' : fail('an unknown escape')
    );
}
