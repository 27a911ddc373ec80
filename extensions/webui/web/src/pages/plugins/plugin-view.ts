import type { Schema } from '../../schema/schema.ts';

/** A plugin as `GET /api/plugins` shows it: the part that the pages use. */
export interface PluginView {
    readonly name: string;
    readonly package: string | null;
    readonly title: string;
    readonly version: string | null;
    readonly state: string;
    readonly enabled: boolean;
    readonly available: string | null;
    readonly bootMs: number | null;
    readonly quarantinedAt: string | null;
    readonly capabilities: {
        readonly asked: Readonly<Record<string, unknown>>;
        readonly granted: Readonly<Record<string, unknown>>;
        readonly missing: Readonly<Record<string, unknown>> | null;
    };
    readonly permissions: readonly {
        readonly name: string;
        readonly title: string;
        readonly roles: readonly string[];
    }[];
    readonly health: { readonly state: string; readonly checks: readonly HealthCheck[] } | null;
    readonly failure: { readonly stage: string; readonly code: string; readonly message: string } | null;
    readonly refused: readonly { readonly capability: string; readonly count: number }[];
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly settingsSchema?: Schema | null;
}

interface HealthCheck {
    readonly name: string;
    readonly state: string;
    readonly evidence: string | null;
    readonly remedy: Readonly<Record<string, unknown>> | null;
}

/** The command or the sentence of a remedy. */
export function remedyOf({ remedy }: HealthCheck): string | null {
    return remedy === null
        ? null
        : String(remedy['command'] ?? remedy['text'] ?? remedy['message'] ?? JSON.stringify(remedy));
}
