import type { Schema } from '../../schema/schema.ts';

/** What a plugin may use, by capability. */
export type Capabilities = Readonly<Record<string, unknown>>;

/** A plugin as `GET /api/plugins` shows it: the part that the pages use. */
export interface PluginView {
    readonly name: string;
    readonly package: string | null;
    readonly title: string;
    readonly icon: string | null;
    readonly version: string | null;
    readonly state: string;
    readonly enabled: boolean;
    readonly available: string | null;
    readonly adoptable: string | null;
    readonly bootMs: number | null;
    readonly quarantinedAt: string | null;
    readonly capabilities: {
        readonly asked: Capabilities;
        readonly granted: Capabilities;
        readonly missing: Capabilities | null;
    };
    readonly permissions: readonly {
        readonly name: string;
        readonly title: string;
        readonly roles: readonly string[];
    }[];
    readonly health: { readonly state: string; readonly checks: readonly HealthCheck[] } | null;
    readonly failure: { readonly stage: string; readonly code: string; readonly message: string } | null;
    readonly deprecations: readonly {
        readonly member: string;
        readonly removedIn: string | null;
        readonly count: number;
    }[];
}

/** A plugin as `GET /api/plugins/{name}` shows it. */
export interface PluginDetail extends PluginView {
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly settingsSchema?: Schema | null;
    readonly refused: readonly { readonly capability: string; readonly count: number; readonly at: string }[];
    readonly released: {
        readonly at: string;
        readonly released: readonly unknown[];
        readonly leaked: readonly { readonly kind: string; readonly name: string; readonly error: string }[];
        readonly cut: number;
        readonly failures: readonly string[];
    } | null;
    readonly versions: readonly KeptVersion[];
}

/** A version that is kept on this machine. */
export interface KeptVersion {
    readonly version: string;
    readonly signature: string;
    readonly installedAt: string;
    readonly current: boolean;
}

/** What the registry offers. */
export interface Offer {
    readonly package: string;
    readonly name: string | null;
    readonly title: string;
    readonly version: string | null;
    readonly latest: string;
    readonly conflict: string | null;
    readonly installed: string | null;
    readonly upgrade: boolean;
}

/** What an install or another version would do; nothing is done yet. */
export interface InstallPreview {
    readonly plugin: string;
    readonly package: string;
    readonly title: string;
    readonly version: string;
    readonly from: string | null;
    readonly kind: 'install' | 'upgrade' | 'rollback';
    readonly signature: string;
    readonly provenance: string | null;
    readonly bytes: number;
    readonly dependencies: readonly { readonly package: string; readonly version: string }[] | null;
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly capabilities: {
        readonly asked: Capabilities;
        readonly granted: Capabilities;
        readonly missing: Capabilities | null;
    };
    readonly consent: readonly {
        readonly capability: string;
        readonly title: string;
        readonly scope: string;
    }[];
    readonly obstacles: readonly {
        readonly code: number;
        readonly reason: string;
        readonly message: string;
    }[];
}

interface HealthCheck {
    readonly name: string;
    readonly state: string;
    readonly evidence: string | null;
    readonly remedy: Readonly<Record<string, unknown>> | null;
}

/** The sentence of a remedy, and the command to copy; null for what there is not. */
export function remedyOf({ remedy }: HealthCheck): { text: string | null; command: string | null } {
    const part = (name: string): string | null => (typeof remedy?.[name] === 'string' ? remedy[name] : null);
    return { text: part('text') ?? part('message'), command: part('command') };
}
