/** The section `hosts` of an export document: writes the hosts of the panel, and imports those of a document. */
import type { Engine, HostRow } from '../../../engine/change.ts';
import type { Incoming, Reading, Section } from '../../../engine/section.ts';
import type { Clock } from '../../../platform/clock.ts';
import { valuesOf } from '../../../platform/header-secrets.ts';
import type { HostHooks } from '../preparation.ts';
import type { Readable } from '../rules/paths.ts';
import type { SafetyContext } from '../rules/safety.ts';
import { storedView, viewOf } from '../view.ts';
import { checkNames, checkSafety } from './checks.ts';
import { type Change, planHosts } from './plan.ts';
import { type Read, readHosts } from './reading.ts';

/** What {@link createHostSection} works with. */
export interface HostSectionOptions {
    readonly engine: Engine;
    readonly hooks: HostHooks;
    readonly clock: Clock;
    readonly readable: Readable;
    /** What every site is held against. Settings and certificates come from the import. */
    readonly safety: () => Omit<SafetyContext, 'settings' | 'certificates'>;
}

/** Makes the export section `hosts`, with basic-auth hashes among its secrets. */
export function createHostSection(options: HostSectionOptions): Section {
    const { engine } = options;
    return {
        name: 'hosts',
        permissions: { read: 'hosts:read', write: 'hosts:write', secrets: 'hosts:write' },
        needs: ['certificates'],
        collect(sink) {
            return [...engine.draft().hosts.values()]
                .sort((a, b) => a.site.id - b.site.id)
                .map((row) => {
                    for (const { username, hash } of row.site.access.basicAuth) {
                        sink?.put(`${row.site.domain}/basicAuth/${username}`, hash);
                    }
                    for (const [key, value] of valuesOf(row.site.headers.request)) {
                        sink?.put(`${row.site.domain}/headers/request/${key}`, value);
                    }
                    return storedView(row);
                });
        },
        async read(part, reading) {
            const hosts = await readHosts(part, reading, options);
            return createIncoming(hosts, reading, options);
        }
    };
}

function createIncoming(hosts: readonly Read[], reading: Reading, options: HostSectionOptions): Incoming {
    const checked = new Map<number, string>();
    let changes: readonly Change[] = [];
    return {
        plan(ground) {
            const planned = planHosts(hosts, ground, options.clock.now());
            changes = planned.changes;
            checkNames(planned.placed, ground, reading);
            checkSafety(
                planned.placed,
                ground,
                { ...options.safety(), settings: ground.settings, certificates: ground.certificates },
                reading,
                checked
            );
            return {
                entries: planned.entries,
                engine: {
                    hosts: changes.map(({ before, after }) => ({
                        id: (after ?? before)?.site.id ?? 0,
                        row: after
                    }))
                },
                done: () =>
                    changes.forEach(({ before, after }) =>
                        options.hooks.afterChange(
                            before === null ? null : view(before, options),
                            after === null ? null : view(after, options),
                            reading.call
                        )
                    )
            };
        },
        async guard() {
            for (const { before, after } of changes) {
                await options.hooks.guard(
                    before === null ? null : view(before, options),
                    after === null ? null : view(after, options),
                    reading.call
                );
            }
        }
    };
}

function view(row: HostRow, { engine }: HostSectionOptions): ReturnType<typeof viewOf> {
    return viewOf(row, engine.stateOf(row));
}
