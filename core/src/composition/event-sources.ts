/** What the panel's parts tell becomes events for those who listen at `GET /api/events`. */
import type { PanelEvents } from '../features/events/events.ts';
import { isStarter, mayRead, type TaskRow } from '../features/tasks/task.ts';
import type { Caller } from '../platform/call.ts';
import type { CoreHooks } from '../platform/hooks.ts';
import type { AuditEntry } from '../server/http/ports.ts';

const core = { plugin: 'core', version: '1.0.0' };
const needs =
    (permission: string) =>
    (caller: Caller): boolean =>
        caller.can(permission);

/** Topics of resources of the audit log, with the permission to read what changed. */
const resources = {
    hosts: ['hosts', needs('hosts:read')],
    certificates: ['certificates', needs('certificates:read')],
    'dns-providers': ['dns-providers', needs('dns:read')],
    settings: ['settings', needs('settings:read')],
    notifications: ['settings', needs('settings:read')],
    users: ['users', needs('users:read')],
    roles: ['users', needs('users:read')]
} as const;

/** Tells an entry of the audit log that is durable, and the change that it stands for. */
export function publishEntry(
    events: PanelEvents,
    { actor, action, resource, resourceId = null, outcome }: AuditEntry
): void {
    events.publish({
        event: 'audit',
        data: { action, resource, id: resourceId, outcome, username: actor.username },
        isVisible: needs('audit:read')
    });
    if (outcome === 'success' && Object.hasOwn(resources, resource)) {
        const [event, isVisible] = resources[resource as keyof typeof resources];
        events.publish({ event, data: { action, resource, id: resourceId }, isVisible });
    }
}

/** Tells how far a task is. */
export function publishTask(events: PanelEvents, task: TaskRow): void {
    const { id, kind, state, progress } = task;
    events.publish({
        event: 'tasks',
        data: { id, kind, state, progress },
        isVisible: (caller) => isStarter(task, caller) || mayRead(task, caller)
    });
}

/** Tells the state of a plugin. */
export function publishPlugin(events: PanelEvents, name: string, state: string, before: string): void {
    events.publish({ event: 'plugins', data: { name, state, before }, isVisible: needs('plugins:read') });
}

/** Tells that the routes of a plugin came or went. Every user may read the document that lists them. */
export function publishRoutes(events: PanelEvents, plugin: string): void {
    events.publish({
        event: 'routes',
        data: { plugin },
        isVisible: ({ id, kind }) => id !== null || kind === 'system'
    });
}

/** Taps the hooks that tell of the engine and of alerts. */
export function publishHooks(events: PanelEvents, { host }: CoreHooks): void {
    host.tap(core, 'engine.applied', ({ revision }) =>
        events.publish({
            event: 'engine',
            data: { state: 'applied', revision },
            isVisible: needs('engine:read')
        })
    );
    host.tap(core, 'engine.failed', ({ message }) =>
        events.publish({
            event: 'engine',
            data: { state: 'failed', message },
            isVisible: needs('engine:read')
        })
    );
    host.tap(core, 'notification.raised', ({ type, data: { severity, title } }) =>
        events.publish({
            event: 'alerts',
            data: { event: type, severity, title },
            isVisible: needs('settings:read')
        })
    );
}
