/** The two steps in which code of a plugin first runs: its migrations, and its `setup`. */
import type { LeakDetector } from '@portico/registry';
import { messageOf, type PluginDefinition } from '@portico/sdk';
import type { GenerationDocument, Guest } from '@portico/sdk/host';

import { openPluginDatabase, type PluginDatabase } from '../database.ts';
import { GenerationFault } from './generation.ts';

/** Opens the plugin's database and migrates it. @throws GenerationFault MIGRATION_FAILED */
export async function openMigrated(
    dataDir: string,
    { entities, migrations }: Pick<PluginDefinition, 'entities' | 'migrations'>
): Promise<PluginDatabase> {
    try {
        return await openPluginDatabase({ dataDir, entities, migrations });
    } catch (error) {
        throw new GenerationFault('mounted', 'MIGRATION_FAILED', messageOf(error), { cause: error });
    }
}

/** What `setup` gets, and how long it may take. */
export interface SetupOptions {
    readonly guest: Guest;
    readonly settings: Readonly<Record<string, unknown>>;
    /** Optional partners that run now. */
    readonly partners: readonly string[];
    readonly leaks: LeakDetector;
    readonly timeoutMs: number;
    /** Aborts when the plugin is no longer to start. */
    readonly signal?: AbortSignal;
}

/** Runs `setup` within its time limit. @returns what the plugin registered. @throws GenerationFault SETUP_TIMEOUT or SETUP_FAILED */
export async function runSetup({
    guest,
    settings,
    partners,
    leaks,
    timeoutMs,
    signal
}: SetupOptions): Promise<GenerationDocument> {
    const overdue = Symbol('overdue');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<typeof overdue>((resolve) => {
        timer = setTimeout(() => resolve(overdue), timeoutMs);
        signal?.addEventListener('abort', () => resolve(overdue), { once: true });
    });
    try {
        signal?.throwIfAborted();
        const document = await leaks.looking(() => Promise.race([guest.setup({ settings, partners }), late]));
        signal?.throwIfAborted();
        if (document === overdue) {
            const message = `setup did not return within ${timeoutMs / 1000} s`;
            throw new GenerationFault('mounted', 'SETUP_TIMEOUT', message);
        }
        return document;
    } catch (error) {
        throw error instanceof GenerationFault
            ? error
            : new GenerationFault('mounted', 'SETUP_FAILED', messageOf(error), { cause: error });
    } finally {
        clearTimeout(timer);
    }
}
