/**
 * A server of models on a free port of the loopback: chat completions, Anthropic messages, embeddings and models, with the events, the fields and the
 * refusals of the vendors. A test says what the next answers are; the server keeps what it was asked.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A function that the model calls. */
export interface Called {
    readonly name: string;
    /** An object, or the text of arguments that are no JSON. */
    readonly input: object | string;
}

/** One answer of the model. */
export interface Turn {
    readonly text?: string;
    readonly calls?: readonly Called[];
    /** Where the tokens end. */
    readonly length?: boolean;
    /** Why the answer ends, in the vendor's word; default: what the answer is. */
    readonly stop?: string;
    /** What the model thinks before it answers. */
    readonly thoughts?: string;
    /** Milliseconds before the first event, and between two pieces of text. */
    readonly delayMs?: number;
    readonly paceMs?: number;
    /** The connection breaks after so many pieces of text. */
    readonly cutAfter?: number;
    /** The stream stays open and silent after so many pieces of text. */
    readonly hangAfter?: number;
    /** An error of the vendor instead, with this status. */
    readonly status?: number;
    /** This text instead of an answer, as it is. */
    readonly raw?: string;
    /** The vendor's error in the middle of the stream, after the text. */
    readonly overloaded?: boolean;
    /** Without the tokens that it used. */
    readonly noUsage?: boolean;
    readonly usage?: { readonly input: number; readonly output: number };
}

/** What the server was asked. */
export interface Asked {
    readonly path: string;
    readonly headers: IncomingMessage['headers'];
    // A test reads the fields that it expects, and so checks them.
    readonly body: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- see above
}

type Say = (asked: Asked) => Turn;

const models = ['model-large', 'model-small', 'model-embed'];
/** Names of functions as OpenAI takes them. */
const functionName = /^[a-zA-Z0-9_-]{1,64}$/;

/** The server. */
export class ModelServer {
    /** All questions, in order. */
    readonly asked: Asked[] = [];
    /** Connections to streams that the client has left. */
    left = 0;
    readonly #server = createServer((request, response) => void this.#answer(request, response));
    readonly #turns: (Turn | Say)[] = [];
    /** What is answered when no turn is left. */
    otherwise: Turn | Say = { text: 'Nothing was said for this.' };

    get port(): number {
        return (this.#server.address() as AddressInfo).port;
    }

    /** Only the questions to models, not those for lists or vectors. */
    get questions(): Asked[] {
        return this.asked.filter(({ path }) => /(?:completions|messages)$/.test(path));
    }

    async open(): Promise<this> {
        await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
        return this;
    }

    async close(): Promise<void> {
        this.#server.closeAllConnections();
        await new Promise((resolve) => this.#server.close(resolve));
    }

    /** Says what the next answers are. */
    say(...turns: (Turn | Say)[]): void {
        this.#turns.push(...turns);
    }

    /** Forgets what was asked, and what was to be said. */
    reset(): void {
        this.asked.length = 0;
        this.#turns.length = 0;
    }

    async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const chunks: Buffer[] = [];
        for await (const chunk of request) {
            chunks.push(chunk as Buffer);
        }
        const text = Buffer.concat(chunks).toString();
        const asked: Asked = {
            path: request.url ?? '',
            headers: request.headers,
            body: text === '' ? null : JSON.parse(text)
        };
        this.asked.push(asked);
        response.on('close', () => {
            this.left += response.writableFinished ? 0 : 1;
        });
        const isAnthropic = 'anthropic-version' in request.headers;
        const key = isAnthropic ? request.headers['x-api-key'] : request.headers.authorization;
        if (key === 'wrong' || key === 'Bearer wrong') {
            return refuse(response, isAnthropic, 401);
        }
        if (asked.path.endsWith('/models')) {
            return json(response, 200, isAnthropic ? anthropicModels() : openAiModels());
        }
        if (asked.path.endsWith('/embeddings')) {
            return json(response, 200, embeddings(asked.body.input));
        }
        const fault = isAnthropic ? faultOfMessages(asked.body) : faultOfChat(asked.body);
        if (fault !== null) {
            return refuse(response, isAnthropic, 400, fault);
        }
        const next = this.#turns.shift() ?? this.otherwise;
        const turn = typeof next === 'function' ? next(asked) : next;
        await wait(turn.delayMs ?? 0);
        if (turn.status !== undefined) {
            return refuse(response, isAnthropic, turn.status);
        }
        if (turn.raw !== undefined) {
            response.writeHead(200, { 'content-type': 'text/event-stream' });
            response.end(turn.raw);
            return;
        }
        response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
        await write(response, isAnthropic ? anthropicEvents(turn) : openAiEvents(turn), turn);
    }
}

type Line = string | { readonly piece: string };

async function write(response: ServerResponse, lines: Iterable<Line>, turn: Turn): Promise<void> {
    let pieces = 0;
    for (const line of lines) {
        if (response.destroyed) {
            return;
        }
        if (typeof line === 'string') {
            response.write(line);
            continue;
        }
        if (turn.cutAfter === pieces) {
            response.destroy();
            return;
        }
        if (turn.hangAfter === pieces) {
            return;
        }
        pieces += 1;
        response.write(line.piece);
        await wait(turn.paceMs ?? 0);
    }
    response.end();
}

/** Text in the pieces in which tokens come. */
const piecesOf = (text: string): string[] => text.match(/\s*\S{1,6}|\s+/g) ?? [];

function* openAiEvents(turn: Turn): Generator<Line> {
    const chunk = (delta: object, finish: string | null = null): string =>
        `data: ${JSON.stringify({
            id: 'chatcmpl-CfXq2S4VtO7oVdYJwq0hZ6nLk1rTe',
            object: 'chat.completion.chunk',
            created: 1_763_980_000,
            model: 'model-large',
            service_tier: 'default',
            system_fingerprint: 'fp_51db84afab',
            choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
            usage: null,
            obfuscation: 'x8Qm'
        })}\n\n`;
    yield chunk({ role: 'assistant', content: '', refusal: null });
    if (turn.thoughts !== undefined) {
        yield chunk({ reasoning_content: turn.thoughts });
    }
    for (const piece of piecesOf(turn.text ?? '')) {
        yield { piece: chunk({ content: piece }) };
    }
    if (turn.overloaded === true) {
        yield `data: ${JSON.stringify({ error: { message: 'The server had an error while processing your request. Sorry about that!', type: 'server_error', param: null, code: null } })}\n\n`;
        return;
    }
    const calls = turn.calls ?? [];
    for (const [index, { name, input }] of calls.entries()) {
        const id = `call_${String(index)}${Math.random().toString(36).slice(2, 14)}`;
        yield chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
        for (const piece of (typeof input === 'string' ? input : JSON.stringify(input)).match(/.{1,7}/gs) ??
            []) {
            yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
        }
    }
    yield chunk(
        {},
        turn.stop ?? (turn.length === true ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop')
    );
    if (turn.noUsage !== true) {
        const { input, output } = turn.usage ?? { input: 120, output: 30 };
        yield `data: ${JSON.stringify({
            id: 'chatcmpl-CfXq2S4VtO7oVdYJwq0hZ6nLk1rTe',
            object: 'chat.completion.chunk',
            created: 1_763_980_000,
            model: 'model-large',
            service_tier: 'default',
            system_fingerprint: 'fp_51db84afab',
            choices: [],
            usage: {
                prompt_tokens: input,
                completion_tokens: output,
                total_tokens: input + output,
                prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
                completion_tokens_details: {
                    reasoning_tokens: 0,
                    audio_tokens: 0,
                    accepted_prediction_tokens: 0,
                    rejected_prediction_tokens: 0
                }
            },
            obfuscation: 'Wn3'
        })}\n\n`;
    }
    yield 'data: [DONE]\n\n';
}

function* anthropicEvents(turn: Turn): Generator<Line> {
    const event = (data: { readonly type: string }): string =>
        `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
    const { input, output } = turn.usage ?? { input: 120, output: 30 };
    yield event({
        type: 'message_start',
        ...{
            message: {
                model: 'model-large',
                id: 'msg_01Vd9LpXqKfWm5iZkq3aQH2n',
                type: 'message',
                role: 'assistant',
                content: [],
                stop_reason: null,
                stop_sequence: null,
                usage: {
                    input_tokens: input,
                    cache_creation_input_tokens: 0,
                    cache_read_input_tokens: 0,
                    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
                    output_tokens: 1,
                    service_tier: 'standard'
                }
            }
        }
    });
    let index = 0;
    const begin = (block: object): string =>
        event({ type: 'content_block_start', ...{ index, content_block: block } });
    const end = (): string => {
        const ended = event({ type: 'content_block_stop', ...{ index } });
        index += 1;
        return ended;
    };
    if (turn.thoughts !== undefined) {
        yield begin({ type: 'thinking', thinking: '', signature: '' });
        for (const delta of [
            { type: 'thinking_delta', thinking: turn.thoughts },
            { type: 'signature_delta', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' }
        ]) {
            yield event({ type: 'content_block_delta', ...{ index, delta } });
        }
        yield end();
    }
    if ((turn.text ?? '') !== '') {
        yield begin({ type: 'text', text: '' });
        yield event({ type: 'ping' });
        for (const text of piecesOf(turn.text ?? '')) {
            yield {
                piece: event({
                    type: 'content_block_delta',
                    ...{ index, delta: { type: 'text_delta', text } }
                })
            };
        }
        yield end();
    }
    if (turn.overloaded === true) {
        yield event({ type: 'error', ...{ error: { type: 'overloaded_error', message: 'Overloaded' } } });
        return;
    }
    for (const { name, input: given } of turn.calls ?? []) {
        yield begin({
            type: 'tool_use',
            id: `toolu_01${Math.random().toString(36).slice(2, 14)}`,
            name,
            input: {}
        });
        yield event({
            type: 'content_block_delta',
            ...{ index, delta: { type: 'input_json_delta', partial_json: '' } }
        });
        for (const partial of (typeof given === 'string' ? given : JSON.stringify(given)).match(/.{1,9}/gs) ??
            []) {
            yield event({
                type: 'content_block_delta',
                ...{ index, delta: { type: 'input_json_delta', partial_json: partial } }
            });
        }
        yield end();
    }
    const stop =
        turn.stop ??
        (turn.length === true ? 'max_tokens' : (turn.calls ?? []).length > 0 ? 'tool_use' : 'end_turn');
    yield event({
        type: 'message_delta',
        ...{
            delta: { stop_reason: stop, stop_sequence: null },
            usage: {
                input_tokens: input,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: 0,
                output_tokens: output
            }
        }
    });
    yield event({ type: 'message_stop' });
}

function refuse(response: ServerResponse, isAnthropic: boolean, status: number, message?: string): void {
    const kinds: Readonly<Record<number, readonly [string, string, string | null]>> = {
        400: ['invalid_request_error', message ?? 'The request is not valid.', null],
        401: ['authentication_error', 'Incorrect API key provided: wrong.', 'invalid_api_key'],
        429: ['rate_limit_error', 'Rate limit reached for model-large.', 'rate_limit_exceeded'],
        529: ['overloaded_error', 'Overloaded', null]
    };
    const [type, text, code] = kinds[status] ?? ['api_error', 'Internal server error', null];
    const body = isAnthropic
        ? { type: 'error', error: { type, message: text }, request_id: 'req_011CVSx5kqDq7Yp2Pn9T4ZbH' }
        : {
              error: {
                  message: text,
                  type: status === 429 ? 'requests' : type,
                  param: null,
                  code
              }
          };
    json(response, status, body, status === 429 ? { 'retry-after': '20' } : {});
}

function json(
    response: ServerResponse,
    status: number,
    body: object,
    headers: Readonly<Record<string, string>> = {}
): void {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
}

function openAiModels(): object {
    return {
        object: 'list',
        data: models.map((id) => ({ id, object: 'model', created: 1_754_000_000, owned_by: 'system' }))
    };
}

function anthropicModels(): object {
    return {
        data: models.map((id) => ({
            type: 'model',
            id,
            display_name: id,
            created_at: '2025-09-29T00:00:00Z'
        })),
        has_more: false,
        first_id: models[0],
        last_id: models.at(-1)
    };
}

/** Words that mean the same lie close to each other; all others have a place of their own. */
const meanings = [
    ['certificate', 'tls', 'https', 'encryption'],
    ['backup', 'snapshot', 'restore', 'copy'],
    ['database', 'postgres', 'mysql', 'sql'],
    ['mail', 'smtp', 'postfix', 'letter']
];

function embeddings(input: string | readonly string[]): object {
    const texts = typeof input === 'string' ? [input] : input;
    return {
        object: 'list',
        data: texts.map((text, index) => ({
            object: 'embedding',
            index,
            embedding: [
                ...meanings.map((words) => words.filter((word) => text.toLowerCase().includes(word)).length),
                0.01
            ]
        })),
        model: 'model-embed',
        usage: { prompt_tokens: texts.length * 8, total_tokens: texts.length * 8 }
    };
}

interface ChatMessage {
    readonly role: string;
    readonly content: unknown;
    readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
    readonly tool_call_id?: string;
}

/** What OpenAI would refuse; null when nothing. */
function faultOfChat(body: {
    readonly model?: unknown;
    readonly messages?: readonly ChatMessage[];
    readonly tools?: readonly {
        readonly function: { readonly name: string; readonly parameters: { readonly type?: string } };
    }[];
}): string | null {
    if (typeof body.model !== 'string' || !Array.isArray(body.messages) || body.messages.length === 0) {
        return 'you must provide a model parameter';
    }
    const badTool = (body.tools ?? []).find(
        (tool) => !functionName.test(tool.function.name) || tool.function.parameters.type !== 'object'
    );
    if (badTool !== undefined) {
        return `Invalid 'tools[0].function': ${badTool.function.name}`;
    }
    let open: string[] = [];
    for (const { role, tool_calls: calls, tool_call_id: id } of body.messages as readonly ChatMessage[]) {
        if (role === 'tool') {
            if (id === undefined || !open.includes(id)) {
                return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
            }
            open = open.filter((each) => each !== id);
        } else if (open.length > 0) {
            return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
        }
        open = role === 'assistant' ? (calls ?? []).map((call) => call.id) : open;
    }
    return open.length > 0
        ? "An assistant message with 'tool_calls' must be followed by tool messages."
        : null;
}

/** What Anthropic would refuse; null when nothing. */
function faultOfMessages(body: {
    readonly model?: unknown;
    readonly max_tokens?: unknown;
    readonly messages?: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
    readonly tools?: readonly { readonly name: string; readonly input_schema: { readonly type?: string } }[];
}): string | null {
    if (typeof body.model !== 'string' || typeof body.max_tokens !== 'number') {
        return 'max_tokens: Field required';
    }
    if (
        (body.tools ?? []).some(
            ({ name, input_schema: schema }) =>
                !/^[a-zA-Z0-9_-]{1,128}$/.test(name) || schema.type !== 'object'
        )
    ) {
        return "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
    }
    let open: readonly string[] = [];
    let last = 'assistant';
    for (const { role, content } of body.messages ?? []) {
        if (role === last) {
            return 'messages: roles must alternate';
        }
        last = role;
        const blocks = typeof content === 'string' ? [] : content;
        const results = blocks.flatMap(({ type, tool_use_id: id }) =>
            type === 'tool_result' ? [id ?? ''] : []
        );
        if (open.some((id) => !results.includes(id)) || results.some((id) => !open.includes(id))) {
            return 'messages: `tool_use` ids were found without `tool_result` blocks immediately after';
        }
        open = blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [id ?? ''] : []));
    }
    return last === 'user' ? null : 'messages: the final message must be from the user';
}

interface Block {
    readonly type: string;
    readonly id?: string;
    readonly tool_use_id?: string;
}
