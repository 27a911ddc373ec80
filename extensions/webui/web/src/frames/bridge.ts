/**
 * The panel's end of the bridge to a page that a plugin brings: JSON-RPC 2.0 over a port. The page has no origin and reaches nothing else; what it
 * asks for is done as the user, within what the plugin may.
 */
import { address, exchange } from '../api/client.ts';
import { invalidate } from '../api/queries.ts';
import { follow } from '../api/streams.ts';
import type { Operation } from '../generated/operations.ts';
import { pathOf, save, showIfTask } from '../generated/run.ts';
import { confirm } from '../kit/dialogs/questions.tsx';
import { toast, toastBad } from '../kit/dialogs/toast.tsx';
import type { BroughtPage } from '../schema/document.ts';
import { t } from '../words/t.ts';
import { findAllowed } from './allowed.ts';
import { BridgeError, failed, type PageAnswer, readAnswer } from './answer.ts';
import { type PageRequest, record, requestOf, text } from './params.ts';
import { Throttle } from './throttle.ts';

/** What the place of a page does for it. */
export interface FramePorts {
    readonly plugin: string;
    readonly page: BroughtPage;
    navigate(location: string): void;
    title(text: string): void;
    resize(height: number): void;
}

interface Message {
    readonly id?: number;
    readonly method?: string;
    readonly params?: unknown;
}

interface Work {
    readonly id: number;
    readonly params: Readonly<Record<string, unknown>>;
    readonly signal: AbortSignal;
}

const mostStreams = 2;
const mostSockets = 4;
const longestText = 500;

/** One page's bridge, from its hello to its end. */
export class Bridge {
    readonly #port: MessagePort;
    readonly #frame: FramePorts;
    readonly #throttle = new Throttle();
    readonly #running = new Map<number, AbortController>();
    readonly #sockets = new Map<number, WebSocket>();
    #streams = 0;
    #asked = false;

    constructor(port: MessagePort, frame: FramePorts) {
        this.#port = port;
        this.#frame = frame;
        port.onmessage = ({ data }: MessageEvent<Message>) => void this.#take(data);
    }

    /** Tells the page that its context has changed. */
    tell(context: unknown): void {
        this.#port.postMessage({ jsonrpc: '2.0', method: 'context', params: context });
    }

    /** Ends all that the page began. */
    close(): void {
        this.#running.forEach((controller) => controller.abort());
        this.#sockets.forEach((socket) => socket.close());
        this.#port.close();
    }

    async #take(message: Message): Promise<void> {
        const { id, method = '' } = message;
        const params = record(message.params);
        if (id === undefined) {
            this.#notified(method, params);
            return;
        }
        const controller = new AbortController();
        this.#running.set(id, controller);
        const answer = await this.#answer(method, { id, params, signal: controller.signal }).then(
            (result) => ({ result }),
            failed
        );
        this.#running.delete(id);
        this.#port.postMessage({ jsonrpc: '2.0', id, ...answer });
    }

    #notified(method: string, { id, data }: Readonly<Record<string, unknown>>): void {
        if (method === 'cancel') {
            this.#running.get(Number(id))?.abort();
        } else if (method === 'send' && (typeof data === 'string' || data instanceof Uint8Array)) {
            this.#sockets.get(Number(id))?.send(data as string | Uint8Array<ArrayBuffer>);
        }
    }

    async #answer(method: string, work: Work): Promise<unknown> {
        const { params } = work;
        switch (method) {
            case 'call':
                return this.#throttle.run(() => this.#call(requestOf(params), work.signal));
            case 'download':
                return this.#throttle.run(() => this.#download(requestOf(params)));
            case 'upload':
                return this.#throttle.run(() => this.#upload(work));
            case 'follow':
                return this.#follow(work);
            case 'open':
                return this.#open(work);
            case 'confirm':
                return this.#ask(
                    text(params['question'], longestText),
                    params['action'] === undefined ? t('Yes') : text(params['action'], 40)
                );
            case 'toast':
                (params['tone'] === 'bad' ? toastBad : toast)(text(params['text'], longestText));
                return null;
            case 'title':
                this.#frame.title(text(params['text'], 120));
                return null;
            case 'resize':
                this.#frame.resize(Math.min(Math.max(Number(params['height']) || 0, 0), 20_000));
                return null;
            case 'navigate':
                this.#frame.navigate(text(params['location'], 4_000));
                return null;
            default:
                throw new BridgeError('NO_METHOD', `There is no ${method.slice(0, 40)}`);
        }
    }

    async #call(request: PageRequest, signal: AbortSignal): Promise<PageAnswer> {
        const operation = await this.#allowed(request);
        if (!['json', 'download'].includes(operation.kind)) {
            throw new BridgeError('WRONG_PARAMS', `${operation.id} is no call`);
        }
        const response = await exchange(operation.method, pathOf(operation, request.path), {
            query: request.query,
            headers: request.headers,
            signal,
            ...(request.body === undefined ? {} : { body: request.body })
        });
        return this.#done(operation, await readAnswer(response, operation.kind === 'download'));
    }

    /** Shows the task that began, and makes stale what the panel shows of it. */
    async #done(operation: Operation, answer: PageAnswer): Promise<PageAnswer> {
        if (operation.method !== 'GET') {
            showIfTask(answer);
            await invalidate(operation.path.split('/').slice(0, 4).join('/'));
        }
        return answer;
    }

    async #download(request: PageRequest): Promise<null> {
        const operation = await this.#allowed(request);
        if (operation.kind !== 'download') {
            throw new BridgeError('WRONG_PARAMS', `${operation.id} is no download`);
        }
        await save(operation, request.path, request.query);
        return null;
    }

    async #upload({ id, params, signal }: Work): Promise<PageAnswer> {
        const request = requestOf(params);
        const operation = await this.#allowed(request);
        const { body } = request;
        if (!(body instanceof Blob) || operation.method === 'GET') {
            throw new BridgeError('WRONG_PARAMS', 'An upload has a file, and an operation that takes one');
        }
        const path = address(pathOf(operation, request.path), request.query);
        if (params['tus'] === undefined) {
            const headers = {
                ...request.headers,
                ...(params['onlyNew'] === true ? { 'if-none-match': '*' } : {})
            };
            const response = await exchange(operation.method, path, { bytes: body, headers, signal });
            return this.#done(operation, await readAnswer(response));
        }
        const { uploadByTus } = await import('../kit/forms/upload.ts');
        await uploadByTus(path, body, {
            metadata: record(params['tus']),
            signal,
            onProgress: (sent, total) => this.#event(id, { sent, total })
        });
        const answer = {
            status: 200,
            code: 0,
            message: 'ok',
            data: null,
            etag: null,
            total: null,
            next: null
        };
        return this.#done(operation, answer);
    }

    async #follow({ id, params, signal }: Work): Promise<null> {
        const request = requestOf(params);
        const operation = await this.#allowed(request);
        if (operation.kind !== 'stream') {
            throw new BridgeError('WRONG_PARAMS', `${operation.id} is no stream`);
        }
        if (this.#streams >= mostStreams) {
            throw new BridgeError('TOO_MANY', `A page follows ${mostStreams} streams at once, no more`);
        }
        this.#streams += 1;
        try {
            const path = address(pathOf(operation, request.path), request.query);
            await follow(path, (event) => this.#event(id, event), signal);
            return null;
        } finally {
            this.#streams -= 1;
        }
    }

    /** A WebSocket of the plugin: the ticket in its address says who opens it. */
    async #open({ id, params, signal }: Work): Promise<{ code: number; reason: string }> {
        const path = text(params['address'], 4_000);
        const url = new URL(path, location.origin);
        if (
            !path.startsWith('/') ||
            url.origin !== location.origin ||
            !url.pathname.startsWith(this.#prefix)
        ) {
            throw new BridgeError('NOT_ALLOWED', 'A page opens sockets of its own plugin only');
        }
        if (this.#sockets.size >= mostSockets) {
            throw new BridgeError('TOO_MANY', `A page opens ${mostSockets} sockets at once, no more`);
        }
        url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
        const socket = new WebSocket(url);
        socket.binaryType = 'arraybuffer';
        this.#sockets.set(id, socket);
        signal.addEventListener('abort', () => socket.close());
        socket.onmessage = ({ data }) => this.#event(id, { data: data as unknown });
        return new Promise((resolve) => {
            socket.onclose = ({ code, reason }) => {
                this.#sockets.delete(id);
                resolve({ code, reason });
            };
        });
    }

    get #prefix(): string {
        return `/api/plugins/${this.#frame.plugin}/`;
    }

    /** The operation, when the page may call it and the user wants what cannot be undone. */
    async #allowed({ operationId }: PageRequest): Promise<Operation> {
        const operation = await findAllowed(this.#frame.plugin, this.#frame.page, operationId);
        if (operation === null) {
            throw new BridgeError(
                'NOT_ALLOWED',
                `${operationId} is none of the plugin's operations, and not in its "uses"`
            );
        }
        const question =
            operation.effect === 'destructive' ? (operation.ui.confirm ?? `${operation.title}?`) : null;
        if (question !== null && !(await this.#ask(question, operation.title))) {
            throw new BridgeError('CANCELLED', 'The user said no');
        }
        return operation;
    }

    /** One question at a time, with the name of the page that asks. */
    async #ask(question: string, action: string): Promise<boolean> {
        if (this.#asked) {
            throw new BridgeError('TOO_MANY', 'The user is asked something already');
        }
        this.#asked = true;
        try {
            return await confirm(`${this.#frame.page.title}: ${question}`, action);
        } finally {
            this.#asked = false;
        }
    }

    #event(id: number, what: object): void {
        this.#port.postMessage({ jsonrpc: '2.0', method: 'event', params: { id, ...what } });
    }
}
