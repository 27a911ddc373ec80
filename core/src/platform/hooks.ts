/** The core's own hooks, published once. Everything that a plugin may hang on is named here. */
import { createHookHost, type HookHost, type Hooks, type Published } from '@portico/sdk';

import type { Logger } from './log/log.ts';

/** Every hook of the core. */
export interface CoreHooks {
    /** Where taps come from and go. */
    readonly host: HookHost;
    readonly hostBeforeSave: Published<'host.beforeSave'>;
    readonly hostGuard: Published<'host.guard'>;
    readonly hostAfterChange: Published<'host.afterChange'>;
    readonly beforeLogin: Published<'auth.beforeLogin'>;
    readonly afterLogin: Published<'auth.afterLogin'>;
    readonly auditRecorded: Published<'audit.recorded'>;
    /** Asked by the host of plugins itself, of one plugin at a time. */
    readonly engineCollect: Published<'engine.collect'>;
    readonly engineApplied: Published<'engine.applied'>;
    readonly engineFailed: Published<'engine.failed'>;
    readonly certificateIssued: Published<'certificate.issued'>;
    readonly certificateExpiring: Published<'certificate.expiring'>;
    readonly certificateFailed: Published<'certificate.failed'>;
    readonly settingsChanged: Published<'settings.changed'>;
    readonly notificationRaised: Published<'notification.raised'>;
    readonly routesChanged: Published<'routes.changed'>;
    readonly pluginStateChanged: Published<'plugin.stateChanged'>;
    readonly healthCollect: Published<'health.collect'>;
    readonly exportCollect: Published<'export.collect'>;
    readonly importRestore: Published<'import.restore'>;
    /** The next three are run by a plugin that makes backups. */
    readonly backupList: Published<'backup.list'>;
    readonly backupCollect: Published<'backup.collect'>;
    readonly backupRestore: Published<'backup.restore'>;
    readonly panelStarted: Published<'panel.started'>;
    readonly panelStopping: Published<'panel.stopping'>;
}

/** Reading a plugin's data and writing it takes longer than an opinion. */
const exportSeconds = 30;
const restoreSeconds = 120;
/** Writing all data of a plugin into a folder. */
const backupSeconds = 3_600;

/** Seconds that a plugin may take; for tests. */
export interface HookTiming {
    readonly exportSeconds?: number;
    readonly restoreSeconds?: number;
}

/** Publishes the core's hooks. */
export function createCoreHooks(
    log: Logger,
    timing: HookTiming = {},
    host: HookHost = createHookHost(({ plugin, version, hook, error, milliseconds }) =>
        log.warn('A tap failed', { plugin, version, hook, error, milliseconds })
    )
): CoreHooks {
    return {
        host,
        hostBeforeSave: host.define('host.beforeSave', 'waterfall'),
        hostGuard: host.define('host.guard', 'guard'),
        hostAfterChange: host.define('host.afterChange', 'notify'),
        beforeLogin: host.define('auth.beforeLogin', 'guard', { failOpen: true, timeoutSeconds: 3 }),
        afterLogin: host.define('auth.afterLogin', 'notify'),
        auditRecorded: host.define('audit.recorded', 'notify'),
        engineCollect: host.define('engine.collect', 'collect'),
        engineApplied: host.define('engine.applied', 'notify'),
        engineFailed: host.define('engine.failed', 'notify'),
        certificateIssued: host.define('certificate.issued', 'notify'),
        certificateExpiring: host.define('certificate.expiring', 'notify'),
        certificateFailed: host.define('certificate.failed', 'notify'),
        settingsChanged: host.define('settings.changed', 'notify'),
        notificationRaised: host.define('notification.raised', 'notify'),
        routesChanged: host.define('routes.changed', 'notify'),
        pluginStateChanged: host.define('plugin.stateChanged', 'notify'),
        healthCollect: host.define('health.collect', 'collect', { timeoutSeconds: 5 }),
        exportCollect: host.define('export.collect', 'collect', {
            timeoutSeconds: timing.exportSeconds ?? exportSeconds
        }),
        importRestore: host.define('import.restore', 'collect', {
            timeoutSeconds: timing.restoreSeconds ?? restoreSeconds
        }),
        backupList: host.define('backup.list', 'collect'),
        backupCollect: host.define('backup.collect', 'collect', { timeoutSeconds: backupSeconds }),
        backupRestore: host.define('backup.restore', 'collect', { timeoutSeconds: backupSeconds }),
        panelStarted: host.define('panel.started', 'notify'),
        panelStopping: host.define('panel.stopping', 'notify')
    };
}

/** What plugins hang on at the entrance, as `auth/` calls it. */
export function loginHooks({ beforeLogin, afterLogin }: CoreHooks): {
    beforeLogin(event: Hooks['auth.beforeLogin']['payload']): Promise<boolean>;
    afterLogin(event: Hooks['auth.afterLogin']['payload']): void;
} {
    return {
        beforeLogin: async (event) =>
            !beforeLogin.used ||
            beforeLogin.run(event).then(
                () => true,
                () => false
            ),
        afterLogin: (event) => notifyLater(afterLogin, () => event)
    };
}

/** Runs the hook of an entry of the audit log that is durable. */
export function recordedHook({ auditRecorded }: CoreHooks): (
    entry: Omit<Hooks['audit.recorded']['payload'], 'resourceId'> & {
        readonly resourceId?: string | number | null;
    }
) => void {
    return ({ actor, action, resource, resourceId = null, outcome, code, ip, requestId }) =>
        notifyLater(auditRecorded, () => ({
            actor,
            action,
            resource,
            resourceId,
            outcome,
            code,
            ip,
            requestId
        }));
}

/** Runs a hook later, outside of the work under way. A hook without taps costs one look. */
export function notifyLater<P>(
    hook: { readonly used: boolean; run(payload: P): Promise<void> },
    payload: () => P
): void {
    if (hook.used) {
        setImmediate(() => void hook.run(payload()));
    }
}
