/** What every other part of the panel is built on: the data folder, its keys and database, settings, audit log, tasks, notifications, hooks. */
import { join } from 'node:path';

import { Audit } from '../features/audit/audit.ts';
import { PanelEvents } from '../features/events/events.ts';
import { Notifications } from '../features/notifications/notifications.ts';
import { Settings } from '../features/settings/settings.ts';
import { Tasks } from '../features/tasks/tasks.ts';
import { removePanelAddress } from '../platform/address/panel.ts';
import type { Call } from '../platform/call.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { awaitDataDir, type DataLock, prepareDataDir } from '../platform/data-dir/data-dir.ts';
import { beginStart } from '../platform/data-dir/first-start.ts';
import type { Database } from '../platform/database/database.ts';
import { type CoreHooks, createCoreHooks, type HookTiming, recordedHook } from '../platform/hooks.ts';
import { checkKeys } from '../platform/keys/check.ts';
import { createKeyring, type Keyring } from '../platform/keys/keyring.ts';
import type { Log } from '../platform/log/log.ts';
import { Outbound } from '../platform/outbound/client.ts';
import { createInternalCall } from '../server/http/request/internal-call.ts';
import { sendAlerts } from './alerts.ts';
import { publishEntry, publishHooks, publishTask } from './event-sources.ts';
import { openStorage } from './storage.ts';

/** The services that every other part may use. */
export interface Foundation {
    readonly config: Config;
    readonly log: Log;
    readonly clock: Clock;
    /** The right to write to the data folder. */
    readonly lock: DataLock;
    readonly keyring: Keyring;
    readonly db: Database;
    readonly hooks: CoreHooks;
    readonly settings: Settings;
    readonly audit: Audit;
    readonly outbound: Outbound;
    readonly notifications: Notifications;
    readonly tasks: Tasks;
    /** What happens in the panel, for those who listen. */
    readonly events: PanelEvents;
    /** A call of the panel itself. */
    systemCall(): Call;
}

/** A command of the command line holds the folder for less. */
const lockPatienceMs = 5_000;

type FoundationOptions = Pick<Foundation, 'config' | 'log' | 'clock'> & {
    readonly hookTiming?: HookTiming | undefined;
};

/** Opens the data folder and everything in it. @throws Error when the folder is in use, damaged, or open to other users */
export async function openFoundation(options: FoundationOptions): Promise<Foundation> {
    const { dataDir } = options.config;
    prepareDataDir(dataDir);
    const lock = await awaitDataDir(dataDir, lockPatienceMs);
    if (lock === null) {
        throw new Error(`${dataDir} is in use by another panel`);
    }
    try {
        // A panel that was killed left its address behind; another program may have its port now.
        removePanelAddress(dataDir);
        const isFirst = beginStart(dataDir);
        const keyring = createKeyring(dataDir, { fresh: isFirst });
        const db = await openStorage(dataDir, isFirst);
        try {
            await checkKeys(db, keyring, join(dataDir, 'keys'));
            return await openServices(options, { lock, keyring, db });
        } catch (error) {
            await db.close();
            throw error;
        }
    } catch (error) {
        lock.release();
        throw error;
    }
}

async function openServices(
    { config, log, clock, hookTiming }: FoundationOptions,
    { lock, keyring, db }: Pick<Foundation, 'lock' | 'keyring' | 'db'>
): Promise<Foundation> {
    const hooks = createCoreHooks(log, hookTiming);
    const settings = await Settings.load({ db, keyring, config, clock, log });
    const events = new PanelEvents();
    publishHooks(events, hooks);
    const recorded = recordedHook(hooks);
    const audit = await Audit.open({
        db,
        keyring,
        headFile: join(config.dataDir, 'audit.head'),
        clock,
        log,
        retentionDays: () => settings.get('audit.retentionDays'),
        recorded(entry) {
            recorded(entry);
            publishEntry(events, entry);
        }
    });
    const outbound = new Outbound({ allow: () => settings.get('panel.outboundAllow'), log });
    const raised = hooks.notificationRaised;
    const notifications = new Notifications({ db, keyring, outbound, clock, log, recorder: audit, raised });
    sendAlerts(hooks, notifications);
    const tasks = await Tasks.open({ db, log, clock, changed: (task) => publishTask(events, task) });
    const systemCall = (): Call => createInternalCall({ recorder: audit });
    return {
        config,
        log,
        clock,
        lock,
        keyring,
        db,
        hooks,
        settings,
        audit,
        outbound,
        notifications,
        tasks,
        events,
        systemCall
    };
}
