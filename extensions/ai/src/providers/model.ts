/** One request to a model, by the client libraries of the two protocols. */
import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible';
import type {
    APICallError,
    LanguageModelV4,
    LanguageModelV4FunctionTool,
    LanguageModelV4Prompt,
    LanguageModelV4StreamPart
} from '@ai-sdk/provider';
import { isFailure } from '@portico/sdk';

import type { ProviderType } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';

/** A provider with its secrets. */
export interface Endpoint {
    readonly id: number;
    readonly name: string;
    readonly type: ProviderType;
    /** Without a slash at its end. */
    readonly baseUrl: string;
    readonly apiKey: string | null;
    readonly headers: Readonly<Record<string, string>>;
    readonly model: string;
    readonly embeddingModel: string | null;
    readonly maxOutputTokens: number | null;
    readonly prices: { readonly input: number; readonly output: number } | null;
}

/** A function that the model may call. */
export type ModelTool = LanguageModelV4FunctionTool;
/** What the model is given: messages in the form of the client libraries. */
export type Prompt = LanguageModelV4Prompt;

/** A call that the model asks for. */
export interface ModelCall {
    readonly id: string;
    readonly name: string;
    /** As the model wrote it: JSON, or not. */
    readonly input: string;
    /** What the provider wants to see again beside the call, such as a signature of its thoughts. */
    readonly meta: Readonly<Record<string, unknown>> | null;
}

/** What comes of one request, in order; `finish` is the last one. */
export type ModelEvent =
    | { readonly type: 'text'; readonly delta: string }
    | { readonly type: 'call'; readonly call: ModelCall }
    | {
          readonly type: 'finish';
          readonly reason: 'stop' | 'length' | 'calls';
          /** Undefined where the provider does not say. */
          readonly input: number | undefined;
          readonly output: number | undefined;
      };

/** What one request is made of. */
export interface ModelRequest {
    readonly prompt: Prompt;
    readonly tools?: readonly ModelTool[];
    readonly maxOutputTokens?: number;
    readonly signal: AbortSignal;
}

/** Asks models of all providers in one form. */
export class Models {
    readonly #ctx: Ctx;
    readonly #patienceMs: number;

    /** @param patienceMs - how long a model may be silent before the request counts as failed */
    constructor(ctx: Ctx, patienceMs: number) {
        this.#ctx = ctx;
        this.#patienceMs = patienceMs;
    }

    /**
     * Sends one request, and yields what comes as it comes. It is never sent twice.
     *
     * @throws MODEL_FAILED 50250 for an error of the provider, an answer that is none, a silence, a stream that was cut
     */
    async *ask(endpoint: Endpoint, request: ModelRequest): AsyncGenerator<ModelEvent> {
        const silence = new AbortController();
        const signal = AbortSignal.any([request.signal, silence.signal]);
        const timer = setTimeout(() => silence.abort(), this.#patienceMs);
        try {
            const model = await this.#model(endpoint);
            const { stream } = await model.doStream({
                prompt: request.prompt,
                ...(request.tools === undefined || request.tools.length === 0
                    ? {}
                    : { tools: [...request.tools], toolChoice: { type: 'auto' } }),
                ...maxTokens(request.maxOutputTokens ?? endpoint.maxOutputTokens),
                abortSignal: signal
            });
            for await (const part of abortable(stream, signal)) {
                timer.refresh();
                yield* eventsOf(part);
                if (part.type === 'finish') {
                    return;
                }
            }
            throw fail.MODEL_FAILED({ why: 'the stream was cut' });
        } catch (error) {
            request.signal.throwIfAborted();
            throw silence.signal.aborted
                ? fail.MODEL_FAILED({ why: `nothing came for ${this.#patienceMs / 1_000} s` })
                : failureOf(error);
        } finally {
            clearTimeout(timer);
        }
    }

    /** Vectors of texts, in their order. @throws MODEL_FAILED 50250 */
    async embed(
        { embeddingModel, ...endpoint }: Endpoint,
        values: readonly string[],
        signal: AbortSignal
    ): Promise<{ readonly vectors: readonly (readonly number[])[]; readonly tokens: number | undefined }> {
        try {
            const provider = await this.#compatible({ ...endpoint, embeddingModel });
            const { embeddings, usage } = await provider
                .embeddingModel(embeddingModel ?? '')
                .doEmbed({ values: [...values], abortSignal: this.#timed(signal) });
            return { vectors: embeddings, tokens: usage?.tokens };
        } catch (error) {
            signal.throwIfAborted();
            throw failureOf(error);
        }
    }

    /** The ids of the models that an address offers. @throws MODEL_FAILED 50250 */
    async list(
        { baseUrl, type, apiKey, headers }: Pick<Endpoint, 'baseUrl' | 'type' | 'apiKey' | 'headers'>,
        signal: AbortSignal
    ): Promise<string[]> {
        try {
            const answer = await this.#ctx.fetch(`${baseUrl}/models`, {
                headers: { ...credentials(type, apiKey), ...headers },
                signal: this.#timed(signal)
            });
            if (!answer.ok) {
                throw fail.MODEL_FAILED({ why: `it answers with status ${answer.status}` });
            }
            const { data } = (await answer.json()) as { data?: unknown };
            if (!Array.isArray(data)) {
                throw fail.MODEL_FAILED({ why: 'its list of models has no data' });
            }
            return data.flatMap(({ id }: { id?: unknown }) => (typeof id === 'string' ? [id] : []));
        } catch (error) {
            signal.throwIfAborted();
            throw failureOf(error);
        }
    }

    #timed(signal: AbortSignal): AbortSignal {
        return AbortSignal.any([signal, AbortSignal.timeout(this.#patienceMs)]);
    }

    /** The client libraries are loaded with the first request: a panel starts sooner without them. */
    async #model(endpoint: Endpoint): Promise<LanguageModelV4> {
        const { baseUrl, apiKey, headers, model, type } = endpoint;
        if (type !== 'anthropic') {
            return (await this.#compatible(endpoint)).chatModel(model);
        }
        const { createAnthropic } = await import('@ai-sdk/anthropic');
        // Without a key of its own, the library would look for one in the environment of the panel.
        return createAnthropic({
            baseURL: baseUrl,
            apiKey: apiKey ?? 'none',
            headers,
            fetch: this.#ctx.fetch
        })(model);
    }

    async #compatible({ baseUrl, apiKey, headers }: Endpoint): Promise<OpenAICompatibleProvider> {
        const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
        return createOpenAICompatible({
            name: 'provider',
            baseURL: baseUrl,
            ...(apiKey === null ? {} : { apiKey }),
            headers: { ...headers },
            includeUsage: true,
            fetch: this.#ctx.fetch
        });
    }
}

function* eventsOf(part: LanguageModelV4StreamPart): Generator<ModelEvent> {
    switch (part.type) {
        case 'text-delta':
            if (part.delta !== '') {
                yield { type: 'text', delta: part.delta };
            }
            return;
        case 'tool-call':
            yield {
                type: 'call',
                call: {
                    id: part.toolCallId,
                    name: part.toolName,
                    input: part.input,
                    meta: part.providerMetadata ?? null
                }
            };
            return;
        case 'error':
            throw failureOf(part.error);
        case 'finish':
            yield finishOf(part);
            return;
        default:
    }
}

function finishOf({
    finishReason: { unified },
    usage
}: Extract<LanguageModelV4StreamPart, { type: 'finish' }>): ModelEvent {
    if (unified === 'error' || unified === 'interrupted') {
        throw fail.MODEL_FAILED({ why: 'the stream was cut' });
    }
    if (unified === 'content-filter') {
        throw fail.MODEL_FAILED({ why: 'its content filter ended the answer' });
    }
    return {
        type: 'finish',
        reason: unified === 'length' ? 'length' : unified === 'tool-calls' ? 'calls' : 'stop',
        input: usage.inputTokens.total,
        output: usage.outputTokens.total
    };
}

const maxTokens = (most: number | null | undefined): { maxOutputTokens?: number } =>
    most === null || most === undefined ? {} : { maxOutputTokens: most };

function credentials(type: ProviderType, apiKey: string | null): Record<string, string> {
    return type === 'anthropic'
        ? { 'anthropic-version': '2023-06-01', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) }
        : apiKey === null
          ? {}
          : { authorization: `Bearer ${apiKey}` };
}

/** A failure of the API of whatever went wrong. What the provider wrote is not told: it may hold the key or the question. */
function failureOf(error: unknown): Error {
    if (isFailure(error)) {
        return error;
    }
    const { statusCode, name } = error as Partial<APICallError>;
    const why =
        statusCode !== undefined && (statusCode < 200 || statusCode > 299)
            ? `it answers with status ${statusCode}`
            : name === 'AI_JSONParseError' || name === 'AI_TypeValidationError' || statusCode !== undefined
              ? 'its answer has another form than its protocol'
              : name === 'AI_InvalidResponseDataError'
                ? 'the stream was cut'
                : typeof error === 'object' && error !== null && !(error instanceof Error)
                  ? 'it reports an error'
                  : 'it cannot be reached';
    return fail.MODEL_FAILED(
        { why, ...(statusCode === undefined ? {} : { status: statusCode }) },
        { cause: error }
    );
}

/** Reads a stream until the signal aborts, also while nothing comes. */
async function* abortable<T>(stream: ReadableStream<T>, signal: AbortSignal): AsyncGenerator<T> {
    const reader = stream.getReader();
    const stop = (): void => void reader.cancel(signal.reason).catch(() => undefined);
    signal.addEventListener('abort', stop, { once: true });
    try {
        for (;;) {
            const { done, value } = await reader.read();
            signal.throwIfAborted();
            if (done) {
                return;
            }
            yield value;
        }
    } finally {
        signal.removeEventListener('abort', stop);
        stop();
    }
}
