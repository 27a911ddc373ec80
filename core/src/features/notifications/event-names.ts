/** The events of the core that channels are told of, in words. Plugins name theirs by themselves, below their own name. */
export const coreEvents = {
    'auth.lockout': 'Too many failed logins to an account',
    'auth.newAddress': 'A login from a new address',
    'auth.secondFactorChanged': 'A second factor was added or removed',
    'certificate.expiring': 'A certificate ends soon',
    'certificate.failed': 'A certificate was not issued',
    'certificate.issued': 'A certificate was issued or renewed',
    'engine.failed': 'The proxy engine has a problem',
    'notification.test': 'A test of a channel',
    'plugin.failed': 'A plugin has failed',
    'plugin.quarantined': 'A plugin failed three times and is not tried again',
    'plugin.restoreFailed': 'A plugin did not take back what was imported',
    'plugin.safeMode': 'The panel runs without plugins'
} as const;

/** An event of the core. */
export type CoreEvent = keyof typeof coreEvents;

/** An event, or a family of events, that a channel can be told of. */
export interface EventName {
    /** As a channel takes it in `events`. */
    readonly name: string;
    readonly title: string;
}

/** Every event of the core, and the family of each plugin. @param plugins - their names */
export function eventNames(plugins: readonly string[]): EventName[] {
    return [
        ...Object.entries(coreEvents).map(([name, title]) => ({ name, title })),
        ...plugins
            .toSorted()
            .map((plugin) => ({ name: `${plugin}.*`, title: `Everything of the plugin ${plugin}` }))
    ];
}
