/** What the screen of the assistant reads. */

/** A conversation with the assistant, as the API gives it. */
export interface Conversation {
    readonly id: number;
    readonly title: string;
    readonly pinned: boolean;
    readonly updatedAt: string;
}

/** A call of a route that an answer made. */
export interface Called {
    readonly id: string;
    readonly route: string;
    readonly arguments: unknown;
    readonly status: number | null;
    readonly code: number | null;
    readonly message: string | null;
    readonly data?: unknown;
    readonly truncated: boolean;
    readonly approvalId: number | null;
}

/** A question or an answer. */
export interface Message {
    readonly id: number;
    readonly role: 'user' | 'assistant';
    readonly text: string;
    readonly attachments: readonly string[];
    readonly calls: readonly Called[];
    readonly reason: string | null;
    readonly usage: { readonly input: number; readonly output: number };
    readonly at: string;
}

/** What the assistant wants to change. */
export interface Approval {
    readonly id: number;
    readonly state: string;
    readonly route: string;
    readonly arguments: unknown;
    readonly hash: string;
    readonly effect: string;
    readonly dangerous: boolean;
    readonly plan: {
        readonly method: string;
        readonly path: string;
        readonly permission: string | null;
        readonly before: unknown;
        readonly after: unknown;
        readonly validated: { readonly code: number; readonly message: string } | null;
    };
    readonly expiresAt: string;
    readonly reason: string | null;
    readonly code: number | null;
    readonly conversationId: number | null;
}

/** Where the routes of the plugin are. */
export const base = '/api/plugins/ai';

/** A piece of an answer: text, or a block of code. */
export interface Piece {
    readonly isCode: boolean;
    readonly text: string;
}

/** Takes a text apart at the fences of its blocks of code. A block that has not ended yet is one, too. */
export function piecesOf(text: string): readonly Piece[] {
    return text
        .split(/^```[^\n]*\n?/m)
        .map((part, index) => ({ isCode: index % 2 === 1, text: part.replace(/\n$/, '') }))
        .filter(({ text: part }) => part.trim() !== '');
}
