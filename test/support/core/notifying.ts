/** The notifications of a panel, with a real database and real connections. As a program of its own, it sends one notification and is killed meanwhile. */
import { pathToFileURL } from 'node:url';

import {
    notificationEntities,
    notificationMigrations
} from '../../../core/src/features/notifications/entities.ts';
import {
    Notifications,
    type NotificationsOptions
} from '../../../core/src/features/notifications/notifications.ts';
import { systemClock } from '../../../core/src/platform/clock.ts';
import { openDatabase } from '../../../core/src/platform/database/database.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import { Outbound } from '../../../core/src/platform/outbound/client.ts';
import { openStore, type Store } from './store.ts';

export const tables = {
    entities: notificationEntities,
    migrations: notificationMigrations
};

export interface Notifying {
    readonly store: Store;
    readonly notifications: Notifications;
    /** Audit entries that no call made. */
    readonly recorded: unknown[];
    /** Closes and opens everything again, as a restart does, without starting it. */
    restart(more?: () => Partial<NotificationsOptions>): Promise<void>;
    close(): Promise<void>;
}

export async function openNotifying(options: Partial<NotificationsOptions> = {}): Promise<Notifying> {
    const store = await openStore(tables);
    const recorded: unknown[] = [];
    const make = (more: Partial<NotificationsOptions>): Notifications =>
        new Notifications({
            db: store.db,
            keyring: store.keyring,
            clock: systemClock,
            log: store.log,
            outbound: new Outbound({ allow: () => ['127.0.0.0/8'], log: store.log }),
            recorder: { record: async (_tx, entry) => void recorded.push(entry) },
            retryMs: [10, 10, 10],
            ...options,
            ...more
        });
    let notifications = make({});
    return {
        store,
        recorded,
        get notifications() {
            return notifications;
        },
        async restart(more = () => ({})) {
            await notifications.close();
            await store.reopen();
            notifications = make(more());
        },
        async close() {
            await notifications.close();
            await store.remove();
        }
    };
}

/** The program's arguments: `folder`, and whether it ends itself before the first attempt or goes on until it is killed. */
async function main([folder = '', when = '']: readonly string[]): Promise<void> {
    const log = createLog({ level: 'silent' });
    const db = await openDatabase({ file: `${folder}/panel.db`, ...tables });
    const outbound = new Outbound({ allow: () => ['127.0.0.0/8'], log });
    const notifications = new Notifications({
        db,
        keyring: createKeyring(folder),
        clock: systemClock,
        log,
        recorder: { record: async () => undefined },
        outbound:
            when === 'before'
                ? Object.assign(outbound, { open: () => process.kill(process.pid, 'SIGKILL') })
                : outbound
    });
    notifications.notify({ event: 'engine.failed', severity: 'error', title: 'It broke' });
    setTimeout(() => process.exit(7), 20_000);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
    void main(process.argv.slice(2));
}
