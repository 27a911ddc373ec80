/** The routes that diagnose, write and review. Each begins a conversation, which can be gone on with. */
import { type Actor, errors, joi, type Value } from '@portico/sdk';

import { answerEvents } from '../answers/events.ts';
import { OwnTools } from '../answers/own-tools.ts';
import type { Question } from '../conversations/schema.ts';
import { reportFindings, submitDocument } from '../documents/own.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const mebibyte = 1_048_576;
/** Characters of a log that a model reads: a part of its beginning, and more of its end. */
const headCharacters = 32_768;
const tailCharacters = 196_608;
const reading = { maxBytes: mebibyte, maxSeconds: 10 } as const;

const sourceSchema = joi
    .object({
        route: joi
            .string()
            .max(200)
            .required()
            .label('Route')
            .description('Its id, such as proxyengine.logs'),
        params: joi.object({}).unknown().default({}).label('Parameters'),
        query: joi.object({}).unknown().default({}).label('Query')
    })
    .label('Route to read');
type Source = Value<typeof sourceSchema>;
const fileSchema = joi.object({
    name: joi.string().min(1).max(300).required().label('Name'),
    text: joi.string().allow('').max(mebibyte).required().label('Text')
});

/** Declares `/diagnose`, `/generate` and `/review`. */
export function registerDocumentRoutes(ctx: Ctx, services: Services): void {
    registerDiagnose(ctx, services);
    registerGenerate(ctx, services);
    registerReview(ctx, services);
}

function registerDiagnose(ctx: Ctx, { answers, briefings, conversations }: Services): void {
    ctx.stream({
        method: 'POST',
        path: '/diagnose',
        id: 'diagnose',
        access: 'chat',
        summary: 'Find out what a log says',
        description: 'The assistant may read the panel besides, and changes nothing.',
        ui: { title: 'Diagnose', role: 'action', order: 1 },
        maxBytes: 3 * mebibyte,
        validate: {
            payload: joi.object({
                text: joi.typed<string | undefined>(
                    joi.string().max(mebibyte).optional().label('Log').meta({ media: 'text/plain' })
                ),
                source: joi.typed<Source | undefined>(sourceSchema.optional()),
                question: joi.string().max(8_192).label('Question')
            })
        },
        events: answerEvents,
        async handler({ actor, payload: { text, source, question }, signal }) {
            const log = text ?? (await readSource(ctx, actor, source, signal));
            const conversation = await conversations.create(actor, {
                title: `Diagnosis: ${question ?? source?.route ?? 'a log'}`.slice(0, 200),
                providerId: null,
                pinned: false
            });
            return answers.begin({
                actor,
                conversation,
                signal,
                question: {
                    text: question ?? 'What is wrong here, and what helps?',
                    attachments: [{ name: source?.route ?? 'log', text: middleCut(log) }]
                },
                brief: async (about, past) => {
                    const tools = await briefings.tools(actor, {
                        conversationId: conversation.id,
                        about: `${about} ${log.slice(-4_000)}`,
                        past,
                        readsOnly: true
                    });
                    return {
                        system: [
                            'Diagnose the attached log. Read the panel where that tells more. Say the cause in a few sentences, then call report_findings.'
                        ],
                        toolbox: new OwnTools(reportFindings(), tools)
                    };
                }
            });
        }
    });
}

function registerGenerate(ctx: Ctx, { answers, conversations, documents }: Services): void {
    ctx.stream({
        method: 'POST',
        path: '/generate',
        id: 'generate',
        access: 'chat',
        summary: 'Write a compose file, a Dockerfile, a script or a host',
        description: 'It is checked before it is shown. Nothing is deployed.',
        ui: { title: 'Write', role: 'action', order: 2 },
        validate: {
            payload: joi.object({
                kind: joi
                    .choice({
                        compose: 'Compose file',
                        dockerfile: 'Dockerfile',
                        script: 'Script',
                        caddy: 'Host of the panel'
                    })
                    .required()
                    .label('Kind'),
                description: joi.string().min(1).max(8_192).required().label('What it shall do')
            })
        },
        events: answerEvents,
        async handler({ actor, payload: { kind, description }, signal }) {
            const conversation = await conversations.create(actor, {
                title: `${kind}: ${description}`.slice(0, 200),
                providerId: null,
                pinned: false
            });
            return answers.begin({
                actor,
                conversation,
                signal,
                question: { text: description, attachments: [] },
                brief: async () => ({
                    system: [writing[kind]],
                    toolbox: new OwnTools(submitDocument(documents, kind, actor), null)
                })
            });
        }
    });
}

function registerReview(ctx: Ctx, { answers, conversations }: Services): void {
    ctx.stream({
        method: 'POST',
        path: '/review',
        id: 'review',
        access: 'chat',
        summary: 'Review files',
        ui: { title: 'Review', role: 'action', order: 3 },
        maxBytes: 3 * mebibyte,
        validate: {
            payload: joi.object({
                files: joi.typed<Value<typeof fileSchema>[] | undefined>(
                    joi.array().items(fileSchema).min(1).max(50).optional().label('Files')
                ),
                source: joi.typed<Source | undefined>(sourceSchema.optional()),
                focus: joi.string().max(2_000).label('What matters')
            })
        },
        events: answerEvents,
        async handler({ actor, payload: { files, source, focus }, signal }) {
            const given = files ?? [
                { name: source?.route ?? 'file', text: await readSource(ctx, actor, source, signal) }
            ];
            if (given.reduce((sum, { text }) => sum + text.length, 0) > mebibyte) {
                throw errors.invalid([{ path: 'files', message: 'All files together may have 1 MiB' }]);
            }
            const conversation = await conversations.create(actor, {
                title: `Review: ${given.map(({ name }) => name).join(', ')}`.slice(0, 200),
                providerId: null,
                pinned: false
            });
            return answers.begin({
                actor,
                conversation,
                signal,
                question: { text: focus ?? 'Review these files.', attachments: numbered(given) },
                brief: async () => ({
                    system: [
                        'Review the attached files for faults, risks and secrets. Name file and line. Then call report_findings.'
                    ],
                    toolbox: new OwnTools(reportFindings(), null)
                })
            });
        }
    });
}

const writing = {
    compose:
        'Write a compose file of the current Compose Specification. Pin images by version, no privileged containers, no host network, secrets by variables. Call submit_document with it, then explain it shortly.',
    dockerfile:
        'Write a Dockerfile: pinned base image, few layers, an account other than root, nothing piped into a shell. Call submit_document with it.',
    script: 'Write a shell script for sh that stops at errors and quotes its variables. Call submit_document with it.',
    caddy: 'Write the body of hosts.create of this panel as JSON: one host, which becomes the configuration of Caddy. Fields: domain, aliases, type (proxy, redirect, static), upstreams [{ address }], tls and others of the panel. Call submit_document with it.'
} as const;

async function readSource(
    ctx: Ctx,
    actor: Actor,
    source: Source | undefined,
    signal: AbortSignal
): Promise<string> {
    if (source === undefined) {
        throw errors.invalid([{ path: 'text', message: 'Give a text, or the route that it comes from' }]);
    }
    const { route, params, query } = source;
    const routes = await ctx.api.routes({ for: actor, effect: 'read' });
    if (!routes.some(({ id }) => id === route)) {
        throw errors.notFound('There is no such route that you may read');
    }
    const { code, text } = await ctx.api.read(actor, { id: route, params, query, signal }, reading);
    if (code !== 0) {
        throw errors.invalid([{ path: 'source', message: `The route answers ${code}` }]);
    }
    return text;
}

/** The beginning and the end of a long text. */
function middleCut(text: string): string {
    return text.length <= headCharacters + tailCharacters
        ? text
        : `${text.slice(0, headCharacters)}\n… ${text.length - headCharacters - tailCharacters} characters left out …\n${text.slice(-tailCharacters)}`;
}

function numbered(files: Question['attachments']): Question['attachments'] {
    return files.map(({ name, text }) => ({
        name,
        text: middleCut(text)
            .split('\n')
            .map((line, at) => `${at + 1}: ${line}`)
            .join('\n')
    }));
}
