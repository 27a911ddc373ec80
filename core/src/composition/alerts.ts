/** Which events of the panel become notifications. It taps the same hooks that plugins tap. */
import type { Notification } from '@portico/sdk';

import type { CoreEvent } from '../features/notifications/event-names.ts';
import type { CoreHooks } from '../platform/hooks.ts';

/** The port to which the core gives notifications for users. */
export interface Notifier {
    /** Returns at once, and never throws. */
    notify(notification: Notification & { readonly event: CoreEvent }): void;
}

/** Notifies of a plugin that failed by its own fault, or that is in quarantine. */
export function alertOfPlugin(
    notifier: Notifier,
    {
        plugin,
        state,
        failure
    }: {
        readonly plugin: string;
        readonly state: string;
        readonly failure: { readonly stage: string; readonly code: string; readonly message: string } | null;
    }
): void {
    const isOwn =
        failure !== null && failure.code !== 'SETTINGS_REQUIRED' && failure.code !== 'REQUIREMENT_FAILED';
    if (isOwn && (state === 'failed' || state === 'quarantined')) {
        const title =
            state === 'failed'
                ? `The plugin ${plugin} has failed`
                : `The plugin ${plugin} failed three times within an hour and is not tried again`;
        notifier.notify({
            event: `plugin.${state}`,
            severity: 'error',
            title,
            text: `${failure.message} (${failure.stage}, ${failure.code})`,
            data: { plugin, stage: failure.stage, code: failure.code }
        });
    }
}

const core = { plugin: 'core', version: '1.0.0' };

/** Taps the core's hooks and sends a notification for each event that an admin should know. */
export function sendAlerts(hooks: CoreHooks, notifier: Notifier): void {
    alertOfEngine(hooks, notifier);
    alertOfCertificates(hooks, notifier);
    alertOfLogins(hooks, notifier);
}

function alertOfEngine({ host }: CoreHooks, notifier: Notifier): void {
    host.tap(core, 'engine.failed', ({ message }) =>
        notifier.notify({
            event: 'engine.failed',
            severity: 'error',
            title: 'The proxy engine has a problem',
            text: message
        })
    );
}

function alertOfCertificates({ host }: CoreHooks, notifier: Notifier): void {
    host.tap(core, 'certificate.issued', ({ id, name, domains, notAfter, renewed }) => {
        notifier.notify({
            event: 'certificate.issued',
            severity: 'info',
            title: `The certificate ${name} was ${renewed ? 'renewed' : 'issued'}`,
            text: `${domains.join(', ')}: valid until ${notAfter}`,
            data: { id, domains, notAfter }
        });
    });
    host.tap(core, 'certificate.expiring', ({ id, name, domains, notAfter, daysLeft }) => {
        const title =
            daysLeft > 0
                ? `The certificate ${name} ends in ${daysLeft} ${daysLeft === 1 ? 'day' : 'days'}`
                : `The certificate ${name} ends today, or has ended`;
        notifier.notify({
            event: 'certificate.expiring',
            severity: daysLeft > 3 ? 'warning' : 'error',
            title,
            text: `${domains.join(', ')}: valid until ${notAfter}`,
            data: { id, domains, notAfter, daysLeft }
        });
    });
    host.tap(core, 'certificate.failed', ({ id, name, domains, problem, nextAttemptAt }) => {
        notifier.notify({
            event: 'certificate.failed',
            severity: 'error',
            title: `The certificate ${name} was not issued`,
            text: String(problem['detail'] ?? ''),
            data: { id, domains, problem, nextAttemptAt }
        });
    });
}

function alertOfLogins({ host }: CoreHooks, notifier: Notifier): void {
    host.tap(core, 'auth.afterLogin', ({ username, ip, userAgent, newNetwork }) => {
        if (newNetwork) {
            notifier.notify({
                event: 'auth.newAddress',
                severity: 'warning',
                title: `${username} logged in from a new address`,
                text: `${ip ?? 'unknown address'}, ${userAgent ?? 'unknown program'}`,
                data: { username, ip }
            });
        }
    });
    host.tap(core, 'audit.recorded', ({ action, resource, resourceId, outcome, actor, ip }) => {
        const who = actor.username ?? 'an unknown user';
        if (action === 'lockout') {
            notifier.notify({
                event: 'auth.lockout',
                severity: 'warning',
                title: `Too many failed logins as ${who}`,
                text: `The last one came from ${ip ?? 'this machine'}`,
                data: { username: actor.username, ip }
            });
        }
        if (resource === 'totp' && outcome === 'success' && (action === 'enable' || action === 'disable')) {
            notifier.notify({
                event: 'auth.secondFactorChanged',
                severity: 'warning',
                title: `The second factor of an account was ${action}d`,
                text: `${who} did it, from ${ip ?? 'this machine'}`,
                data: { userId: resourceId, by: actor.username }
            });
        }
    });
}
