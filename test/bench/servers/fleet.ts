/** A panel process with many hosts, which are written to its database directly. */
import { mkdirSync } from 'node:fs';

import { openStorage } from '../../../core/src/composition/storage.ts';
import type { HostRow } from '../../../core/src/engine/change.ts';
import type { Site } from '../../../core/src/engine/site.ts';
import { DatabaseHostStore } from '../../../core/src/features/hosts/store.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { testSite } from '../../support/engine/site.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';

/** Eight behaviours that real sites have. */
export const behaviours: readonly Partial<Site>[] = [
    {},
    { compression: true },
    { securityHeaders: true },
    { compression: true, securityHeaders: true },
    { bodyLimitBytes: 10_000_000 },
    { headers: { request: [], response: [{ op: 'set', name: 'X-Served-By', value: 'portico' }] } },
    { timeouts: { connectSeconds: 5, readSeconds: 60, writeSeconds: 60 } },
    {
        compression: true,
        securityHeaders: true,
        bodyLimitBytes: 10_000_000,
        errorPages: [{ status: 502, body: 'away' }]
    }
];

export const nameOf = (id: number): string => `host${id}.example.test`;

/** Rows with ids from 1, which take the behaviours in turn. */
export const rowsOf = (count: number, upstream: string): readonly HostRow[] =>
    Array.from({ length: count }, (_, index) => ({
        site: testSite({
            id: index + 1,
            domain: nameOf(index + 1),
            upstreams: [{ address: upstream, weight: 1 }],
            ...behaviours[index % behaviours.length]
        }),
        version: 1,
        owner: null,
        tags: [`tag${index % 10}`],
        notes: '',
        createdAt: new Date(1_700_000_000_000 + index * 1000),
        updatedAt: new Date(1_700_000_000_000 + index * 1000)
    }));

/** Starts a panel with `count` hosts that all lead to one upstream. */
export async function startFleet(
    count: number,
    upstream: string,
    environment: Readonly<Record<string, string>> = {},
    node: readonly string[] = []
): Promise<PanelProcess> {
    const panel = await createPanelProcess({ environment, node });
    try {
        mkdirSync(panel.dataDir, { mode: 0o700 });
        const keyring = createKeyring(panel.dataDir);
        const db = await openStorage(panel.dataDir);
        const store = new DatabaseHostStore(db, keyring);
        await db.write((tx) =>
            store.write(
                tx,
                rowsOf(count, upstream).map((row) => ({ id: row.site.id, row })),
                true
            )
        );
        await db.close();
        await panel.start();
    } catch (error) {
        await panel.close();
        throw error;
    }
    return panel;
}
