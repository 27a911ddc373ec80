/** A conversation as a file. */
import type { Download } from '@portico/sdk';

import type { Conversation, Message } from './schema.ts';

/** Makes the downloadable file of one conversation. */
export function exportOf(
    conversation: Conversation,
    messages: readonly Message[],
    format: 'markdown' | 'json'
): Download {
    const bytes = Buffer.from(
        format === 'json'
            ? `${JSON.stringify({ conversation, messages }, null, 2)}\n`
            : markdownOf(conversation, messages)
    );
    return {
        name: `conversation-${conversation.id}.${format === 'json' ? 'json' : 'md'}`,
        type: format === 'json' ? 'application/json' : 'text/markdown',
        size: bytes.byteLength,
        async *open({ start, end }) {
            yield bytes.subarray(start, end ?? undefined);
        }
    };
}

function markdownOf({ title, createdAt }: Conversation, messages: readonly Message[]): string {
    const parts = messages.map(({ role, text, calls, attachments, at }) =>
        [
            `## ${role === 'user' ? 'Question' : 'Answer'}, ${at}`,
            text,
            ...attachments.map((name) => `Attachment: ${name}`),
            ...calls.map(
                ({ route, arguments: given, code }) =>
                    `- \`${route}\` ${JSON.stringify(given)} → ${code ?? 'waits for approval'}`
            )
        ]
            .filter((line) => line !== '')
            .join('\n\n')
    );
    return [`# ${title}`, createdAt, ...parts, ''].join('\n\n');
}
