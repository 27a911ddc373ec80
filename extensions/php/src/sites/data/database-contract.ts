/** What this extension calls of the plugin `database`. */
import type { Call } from '@portico/sdk';

/** The part of the contract of the plugin `database` that is used here. */
export interface DatabaseContract {
    provision(
        input: {
            readonly serverId: number;
            readonly database: string;
            readonly level: 'read' | 'write' | 'owner';
        },
        call: Call
    ): Promise<{
        readonly kind: 'mysql' | 'postgresql';
        readonly host: string | null;
        readonly port: number;
        readonly socket: string | null;
        readonly database: string;
        readonly username: string;
        readonly account: string;
        readonly password: string;
    }>;
    drop(
        input: { readonly serverId: number; readonly database: string; readonly account?: string },
        call: Call
    ): Promise<{ dropped: boolean }>;
}
