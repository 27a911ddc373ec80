/** Installed apps and plans as answers show them. No value of a secret leaves by here. */
import { secretNames } from '../catalogue/form.ts';
import type { InstalledRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { addressOf, stackOf, urlOf } from './planning/layout.ts';
import type { AppPlan } from './planning/planner.ts';
import { importedBecause, type InstalledStore, type Revision } from './store.ts';

/** A plan as answers show it. */
export function planView(plan: AppPlan) {
    const { images, ports, mounts, findings, memoryBytes, isSigned, warnings, consent, difference } = plan;
    return {
        images: images.map((each) => ({ ...each })),
        ports: ports.map(({ service, containerPort, hostIp, hostPort }) => ({
            ...{ service, containerPort, hostIp, hostPort }
        })),
        mounts: mounts.map((each) => ({ ...each })),
        volumes: [
            ...new Set(
                mounts.flatMap(({ type, source }) => (type === 'volume' && source !== null ? [source] : []))
            )
        ],
        findings: findings.map((each) => ({ ...each })),
        difference: Object.fromEntries(
            Object.entries(difference).map(([key, { added, removed }]) => [
                key,
                { added: [...added], removed: [...removed] }
            ])
        ),
        memoryBytes,
        signed: isSigned,
        warnings: [...warnings],
        consent
    };
}

/** The state of an app, from its own and that of its stack. */
function stateOf({ state, revision }: InstalledRow, stack: string | null, because: string | null): string {
    if (state !== 'ready') {
        return state;
    }
    if (stack === null && because === importedBecause) {
        return 'stopped';
    }
    if (revision === 0 || stack === null || stack === 'absent') {
        return 'failed';
    }
    return stack === 'starting' ? 'running' : stack;
}

/** Values of a revision; secrets only say that they are set. */
function shownValues({ document, values }: Revision): Record<string, string | { set: boolean }> {
    const secret = secretNames(document.form);
    return Object.fromEntries(
        Object.entries(values).map(([name, value]) => [
            name,
            secret.has(name) ? { set: value !== '' } : value
        ])
    );
}

/** An installed app as answers show it. */
export async function installedView(
    { ctx, store }: { readonly ctx: Ctx; readonly store: InstalledStore },
    row: InstalledRow,
    update: string | null
) {
    const { name, source, app, keyId, port, domain, ssl, hostId, autoUpdate, lastError } = row;
    const [revision, stack] = await Promise.all([
        row.revision === 0 ? null : store.revision(name, row.revision),
        ctx.plugins.container.stack({ name: stackOf(name) }).catch(() => undefined)
    ]);
    return {
        ...{
            name,
            key: `${source}/${app}`,
            source,
            app,
            keyId,
            domain,
            hostId,
            autoUpdate,
            lastError,
            update
        },
        version: revision?.version ?? null,
        revision: row.revision,
        // An engine that gives no answer says nothing of the app.
        state:
            stack === undefined
                ? row.state === 'ready'
                    ? 'degraded'
                    : row.state
                : stateOf(row, stack?.state ?? null, revision?.because ?? null),
        address: addressOf({ port }),
        url: urlOf({ domain, ssl, port }),
        stack: stackOf(name),
        values: revision === null ? {} : shownValues(revision),
        publish: (revision?.layout.publish ?? []).map((each) => ({ ...each })),
        limits: { ...revision?.layout.limits },
        digests: { ...revision?.digests }
    };
}
