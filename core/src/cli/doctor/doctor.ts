/** `portico doctor`: looks at everything that a panel stands on, changes nothing, and says what to do. */
import { type Command, jsonOption } from '../command/command.ts';
import type { Check } from './check.ts';

const marks = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const;

export const doctor: Command = {
    name: 'doctor',
    positionals: [],
    summary: 'Check the machine, the data folder, the panel and the proxy engine',
    details: [
        'Changes nothing. Each check has a result, what it is based on, and where something is wrong what to do about it. Exits with 1 when one has failed; a warning is none.'
    ],
    options: jsonOption,
    async run({ config, output }) {
        const { inspect } = await import('./run-checks.ts');
        const checks = await inspect(config);
        const ok = checks.every(({ state }) => state !== 'fail');
        output.result({ ok, checks }, checks.map(lineOf).join('\n'));
        const count = (wanted: Check['state']): number =>
            checks.filter(({ state }) => state === wanted).length;
        output.say(`${count('ok')} ok, ${count('warn')} warnings, ${count('fail')} failed`);
        return ok ? 0 : 1;
    }
};

function lineOf({ id, state, evidence, remedy }: Check): string {
    return `${marks[state]}  ${id.padEnd(16)}${evidence}${remedy === null ? '' : `\n${' '.repeat(22)}→ ${remedy}`}`;
}
