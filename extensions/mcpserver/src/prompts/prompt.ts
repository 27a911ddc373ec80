/** What a prompt is. */
import type { PromptArgument } from '../contract.ts';

/** A prompt as clients see it. */
export interface Prompt {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly arguments: readonly PromptArgument[];
    /** `{{name}}` stands for an argument. */
    readonly text: string;
    /** The plugin that it comes with, or `admin`. */
    readonly source: string;
    readonly readOnly: boolean;
}
