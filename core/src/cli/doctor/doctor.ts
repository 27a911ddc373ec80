/** `portico doctor`: checks everything that a panel depends on, and says what to do. Changes nothing. */
import { type Command, jsonOption } from '../command/command.ts';
import type { Check } from './check.ts';

const marks = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const;

/** The command `doctor`, which looks for faults of the machine and of the installation. */
export const doctor: Command = {
    name: 'doctor',
    positionals: [],
    summary: 'Check the machine, the data folder, the panel and the proxy engine',
    details: [
        'Changes nothing, unless --clean is given. Each check shows its result, the facts behind it and, when something is wrong, what to do. Exits with 1 when a check fails, but not for warnings.'
    ],
    options: {
        clean: {
            type: 'boolean',
            description:
                "Remove the engine's folders whose data folder does not exist any more; mount the disks of all data folders first"
        },
        ...jsonOption
    },
    async run({ config, output, flag }) {
        const { runChecks } = await import('./run-checks.ts');
        if (flag('clean')) {
            const { removeFolders } = await import('./folders.ts');
            removeFolders().forEach((path) => output.say(`Removed ${path}`));
        }
        const checks = await runChecks(config);
        const ok = checks.every(({ state }) => state !== 'fail');
        output.result({ ok, checks }, checks.map(formatCheck).join('\n'));
        const count = (wanted: Check['state']): number =>
            checks.filter(({ state }) => state === wanted).length;
        output.say(`${count('ok')} ok, ${count('warn')} warnings, ${count('fail')} failed`);
        return ok ? 0 : 1;
    }
};

/** One check as lines of text. */
export function formatCheck({ id, state, evidence, remedy }: Check): string {
    return `${marks[state]}  ${id.padEnd(16)}${evidence}${remedy === null ? '' : `\n${' '.repeat(22)}→ ${remedy}`}`;
}
