/** What an admin says of an installed app beyond its form: ports, limits, address. */

/** A port that is published beyond 127.0.0.1. */
export interface Published {
    readonly service: string;
    readonly containerPort: number;
    readonly hostIp: string;
    readonly hostPort: number;
}

/** Limits of one service. */
export interface Limits {
    readonly memoryBytes?: number | undefined;
    readonly cpus?: number | undefined;
}

/** How an app lies on this machine. It is kept with each revision. */
export interface Layout {
    /** The main port on 127.0.0.1; it never changes. */
    readonly port: number;
    /** Other ports on 127.0.0.1, by `service/port/protocol`; they stay, too. */
    readonly ports: Readonly<Record<string, number>>;
    readonly publish: readonly Published[];
    readonly limits: Readonly<Record<string, Limits>>;
    readonly domain: string | null;
    readonly ssl: boolean;
    readonly sslMode: string | null;
}

/** The name of an app's stack in `container`. */
export const stackOf = (name: string): string => `app-${name}`;
/** Where the app answers on this machine. */
export const addressOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${port}`;
/** Where people find the app. */
export const urlOf = ({ domain, ssl, port }: Pick<Layout, 'domain' | 'ssl' | 'port'>): string =>
    domain === null ? `http://127.0.0.1:${port}` : `${ssl ? 'https' : 'http'}://${domain}`;
