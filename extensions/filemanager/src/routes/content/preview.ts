/** The route that says how a file can be shown, with the beginning of a text. */
import { joi } from '@portico/sdk';

import { mediaType, openFile } from '../../files/content/content.ts';
import { filesystem } from '../../files/filesystem.ts';
import { location } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';

const mostBytes = 64 * 1024;
const kinds = {
    text: 'Text',
    image: 'Picture',
    audio: 'Sound',
    video: 'Video',
    pdf: 'PDF',
    binary: 'Something else'
} as const;
type Kind = keyof typeof kinds;

const previewSchema = joi.object({
    kind: joi.choice(kinds).required().label('Kind'),
    type: joi.string().required().label('Media type').description('Told by the name'),
    encoding: joi
        .choice({ 'utf-8': 'UTF-8' })
        .allow(null)
        .required()
        .label('Encoding')
        .description('Of a text'),
    text: joi
        .string()
        .allow('', null)
        .required()
        .label('Text')
        .description('Of a text its first 64 KiB, else null')
});

/** Registers the route of previews. */
export function registerPreviewRoutes(ctx: Ctx, { roots }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/preview',
        id: 'preview',
        access: 'content',
        summary: 'How a file can be shown',
        ui: { title: 'Preview', role: 'hidden' },
        returns: previewSchema,
        description:
            'A text is what is UTF-8 and has no NUL. Pictures, sounds, videos and PDF are got from `/content` with `inline`.',
        validate: { query: location },
        async handler({ query, actor }) {
            const { root, path } = roots.at(actor, query);
            const type = mediaType(path);
            const { handle, entry } = await openFile(root.files, path);
            try {
                const kind = kindOf(type);
                const buffer = Buffer.alloc(Math.min(mostBytes, entry.size));
                const { bytesRead } = await filesystem(() => handle.read(buffer, 0, buffer.byteLength, 0));
                const text =
                    kind === null ? decode(buffer.subarray(0, bytesRead), entry.size > bytesRead) : null;
                const shown: Kind = kind ?? (text === null ? 'binary' : 'text');
                return {
                    kind: shown,
                    type,
                    encoding: text === null ? null : ('utf-8' as const),
                    text
                };
            } finally {
                await handle.close();
            }
        }
    });
}

/** The kind that a media type says; null where the bytes have to say it. An SVG is a text here: it can hold scripts. */
function kindOf(type: string): Exclude<Kind, 'text' | 'binary'> | null {
    if (type === 'application/pdf') {
        return 'pdf';
    }
    const groups = ['image', 'audio', 'video'] as const;
    return type === 'image/svg+xml' ? null : (groups.find((group) => type.startsWith(`${group}/`)) ?? null);
}

/** The text of bytes; null where they are none. The last character may be cut where more follows. */
function decode(bytes: Uint8Array, more: boolean): string | null {
    if (bytes.includes(0)) {
        return null;
    }
    try {
        return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: more });
    } catch {
        return null;
    }
}
