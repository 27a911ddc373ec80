/** What other plugins see of this one: the hook by which they add prompts. */
import type { Collect } from '@portico/sdk';

/** An argument of a prompt. */
export interface PromptArgument {
    readonly name: string;
    readonly required: boolean;
}

/** A prompt that a plugin adds. */
export interface PluginPrompt {
    /** `[a-z][a-z0-9_-]{0,63}`; shown as `<plugin>_<name>`. */
    readonly name: string;
    readonly title: string;
    readonly description?: string;
    /** At most 20. */
    readonly arguments?: readonly PromptArgument[];
    /** At most 32 KiB; `{{name}}` stands for the argument of that name. */
    readonly text: string;
}

declare module '@portico/sdk' {
    interface Hooks {
        /** Which prompts plugins have for agents. Needs the capability `taps`. */
        'mcpserver.prompts': Collect<Readonly<Record<string, never>>, PluginPrompt>;
    }
}
