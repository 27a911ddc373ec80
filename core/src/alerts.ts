/**
 * What people are told of when they did not ask: a table from what happens in the panel to the notifications that channels send. It hangs
 * on the same hooks that plugins do.
 */
import type { CoreHooks } from './hooks.ts';

/** Where notifications go. */
export interface Notifier {
    /** Returns at once, and never throws. */
    notify(notification: { readonly event: string; readonly severity: 'info' | 'warning' | 'error'; readonly title: string; readonly text?: string; readonly data?: Readonly<Record<string, unknown>> }): void;
}

const core = { plugin: 'core', version: '1.0.0' };

export function sendAlerts({ host }: CoreHooks, notifier: Notifier): void {
    host.tap(core, 'engine.failed', ({ message }) => notifier.notify({ event: 'engine.failed', severity: 'error', title: 'The proxy engine has a problem', text: message }));
    host.tap(core, 'auth.afterLogin', ({ username, ip, userAgent, newNetwork }) => {
        if (newNetwork) {
            notifier.notify({ event: 'auth.newAddress', severity: 'warning', title: `${username} logged in from a new address`, text: `${ip ?? 'unknown address'}, ${userAgent ?? 'unknown program'}`, data: { username, ip } });
        }
    });
    host.tap(core, 'audit.recorded', ({ action, resource, resourceId, outcome, actor, ip }) => {
        const who = actor.username ?? 'somebody';
        if (action === 'lockout') {
            notifier.notify({ event: 'auth.lockout', severity: 'warning', title: `Too many failed logins as ${who}`, text: `The last one came from ${ip ?? 'this machine'}`, data: { username: actor.username, ip } });
        }
        if (resource === 'totp' && outcome === 'success' && (action === 'enable' || action === 'disable')) {
            notifier.notify({ event: 'auth.secondFactorChanged', severity: 'warning', title: `The second factor of an account was ${action}d`, text: `${who} did it, from ${ip ?? 'this machine'}`, data: { userId: resourceId, by: actor.username } });
        }
    });
}
