/** Makes another version of a plugin the one that counts: the lock, the data and the record change together. */
import type { Transaction } from '../../../platform/database/database.ts';
import type { NextData } from '../data/next-data.ts';
import type { Runtime } from '../records/plugin.ts';
import { newRecord } from '../records/records.ts';
import type { NextCode, SwapOptions, SwapPorts } from './ports.ts';

/** Replaces a plugin that does not run. Its data are copied, so that a rollback finds the old ones as they were. Only inside `Lifecycle.withPlugin`. */
export async function activateStopped(
    ports: SwapPorts,
    runtime: Runtime,
    next: Omit<NextCode, 'definition'>,
    { phase, also }: Pick<SwapOptions, 'phase' | 'also'>
): Promise<void> {
    const owner = { name: runtime.name, package: next.plugin.package };
    const data = next.source === null ? null : await ports.data.next(owner, next.source, next.entry);
    try {
        await phase('copied');
        await data?.prepare(next.decision);
        await ports.lifecycle.registry.lock.activate(next.entry);
    } catch (error) {
        await data?.discard();
        throw error;
    }
    await phase('committed');
    ports.lifecycle.switchTo(runtime, {
        found: next.found,
        plugin: next.plugin,
        definition: null,
        generation: null
    });
    await finishCommit(ports, runtime, data, next, also);
}

/** Writes the record and the data rows after the lock names the new code. Never rejects: the next start writes what cannot be written now. */
export async function finishCommit(
    { lifecycle, db, clock, log }: SwapPorts,
    runtime: Runtime,
    data: NextData | null,
    { plugin, decision }: Pick<NextCode, 'plugin' | 'decision'>,
    also: SwapOptions['also']
): Promise<void> {
    const finish = async (tx: Transaction): Promise<void> => {
        const record = lifecycle.records.get(runtime.name, plugin.package) ?? {
            ...newRecord(plugin, clock.now()),
            version: 0
        };
        const after = { ...record, ...decision, seen: plugin, failure: null, version: record.version + 1 };
        await (runtime.generation === null
            ? lifecycle.records.put(tx, after)
            : lifecycle.records.putRunning(tx, after, lifecycle.forgetArea));
        await also?.(tx);
    };
    try {
        await (data === null ? db.write(finish) : data.commit(finish));
    } catch (error) {
        log.error(
            'Another version of a plugin counts now, but its record could not be written; the next start writes it',
            { plugin: runtime.name, error }
        );
    }
}
