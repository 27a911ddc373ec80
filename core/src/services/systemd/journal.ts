/** The output of services as systemd's journal keeps it, within the limits of the machine's journal. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import type { OutputOptions, ServiceLine } from '../port.ts';
import { unitPrograms } from './unit.ts';

/** Whose lines are wanted. */
export interface JournalSource {
    readonly unit: string;
    /** Of the service; other lines of the unit are those of programs that write to the journal by themselves. */
    readonly identifier: string;
    /** Id of the service's account. */
    readonly uid: number;
}

/** Priority of lines from the standard error. */
const warning = '4';

/** The lines of a unit, oldest first, with systemd's own errors about it. */
export async function* readJournal(
    { unit, identifier, uid }: JournalSource,
    { tail, follow, signal }: OutputOptions
): AsyncGenerator<ServiceLine> {
    if (signal.aborted) {
        return;
    }
    const child = spawn(
        unitPrograms.journalctl,
        [
            ...['--quiet', '--no-pager', '--output=json', '--all', `--lines=${tail}`],
            '--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER',
            ...(follow ? ['--follow'] : []),
            // The journal itself sets the fields that begin with an underscore, so no other account can write these lines. Of a process that has
            // ended already it does not know the unit any more.
            ...[`_SYSTEMD_UNIT=${unit}`, `SYSLOG_IDENTIFIER=${identifier}`, '+'],
            ...[`_UID=${uid}`, '_TRANSPORT=stdout', `SYSLOG_IDENTIFIER=${identifier}`, '+'],
            ...['_UID=0', `UNIT=${unit}`, 'PRIORITY=3']
        ],
        { stdio: ['ignore', 'pipe', 'ignore'], env: { LC_ALL: 'C' } }
    );
    const end = (): void => void child.kill('SIGKILL');
    signal.addEventListener('abort', end, { once: true });
    child.on('error', () => undefined); // without the program there is no line
    try {
        for await (const line of createInterface({ input: child.stdout })) {
            yield lineOf(JSON.parse(line) as Entry, identifier);
        }
    } finally {
        signal.removeEventListener('abort', end);
        end();
    }
}

/** Source: systemd.journal-fields(7), journalctl's JSON. */
interface Entry {
    readonly __REALTIME_TIMESTAMP: string;
    /** Bytes where they are no text. */
    readonly MESSAGE?: string | readonly number[] | null;
    readonly PRIORITY?: string;
    readonly SYSLOG_IDENTIFIER?: string;
}

function lineOf(entry: Entry, identifier: string): ServiceLine {
    const { MESSAGE: message, PRIORITY: priority } = entry;
    const text = typeof message === 'string' ? message : Buffer.from(message ?? []).toString();
    const isOwn = entry.SYSLOG_IDENTIFIER === identifier;
    return {
        at: Math.floor(Number(entry.__REALTIME_TIMESTAMP) / 1000),
        stream: isOwn && priority !== warning ? 'stdout' : 'stderr',
        text: isOwn ? text : `[systemd] ${text}`
    };
}
