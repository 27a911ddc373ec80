/**
 * Answers other than plain data. A handler that returns plain data answers 200; a reply is the only way to set another status, a header or a message.
 * A reply is plain data with a brand.
 */

const brand = '~portico';

/** A piece of long work, as every API shows it. */
export interface TaskView {
    readonly id: number;
    readonly kind: string;
    readonly state: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
    /** 0 to 1, or null when unknown. */
    readonly progress: number | null;
    readonly startedAt: string | null;
    readonly finishedAt: string | null;
    readonly result: unknown;
    readonly error: unknown;
}

/** An answer with a status, headers and a message. Made by `reply` only. */
export interface Reply<T> {
    readonly '~portico': 'reply';
    readonly status: number;
    readonly message: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly data: T;
}

/** What a page of a list says about the whole list. */
export interface Page {
    /** Becomes `X-Total-Count`. */
    readonly total?: number;
    /** Opaque cursor of the next page; becomes `Link: <…>; rel="next"`. */
    readonly next?: string | null;
}

/** What an answer has beside its data. */
export interface ReplyOptions {
    readonly headers?: Readonly<Record<string, string>>;
    /** Becomes the ETag `"<version>"`. Taken from `data.version` when that is a number. */
    readonly version?: string | number;
    readonly message?: string;
}

/** Names of the headers that `list` hands to the host, which knows the request's own address and turns them into `Link`. */
export const nextCursorHeader = 'x-portico-next';

/** Makes answers with another status than 200, or with headers. */
export const reply = {
    /** 201 with the new object and where it is read. */
    created<T>(location: string, data: T, options: ReplyOptions = {}): Reply<T> {
        return make(201, data, { ...options, headers: { ...options.headers, location } });
    },
    /** 202 with the task that does the work, or with the plugin's own record of it; then set `Location` to where it can be read. */
    accepted<T extends object>(work: T, options: ReplyOptions = {}): Reply<T> {
        return make(202, work, options);
    },
    /** 200 with one page of a list. */
    list<T>(rows: readonly T[], page: Page = {}): Reply<T[]> {
        const headers: Record<string, string> = {};
        if (page.total !== undefined) {
            headers['x-total-count'] = String(page.total);
        }
        if (page.next !== undefined && page.next !== null) {
            headers[nextCursorHeader] = page.next;
        }
        return make(200, rows as T[], { headers });
    },
    /** 200 with headers, a version or a message of its own. */
    with<T>(data: T, options: ReplyOptions): Reply<T> {
        return make(200, data, options);
    }
};

/** Tells a reply from plain data, by its brand. */
export function isReply(value: unknown): value is Reply<unknown> {
    return (
        typeof value === 'object' && value !== null && (value as Record<string, unknown>)[brand] === 'reply'
    );
}

function make<T>(status: number, data: T, options: ReplyOptions): Reply<T> {
    const version = options.version ?? versionOf(data);
    const headers = version === undefined ? options.headers : { etag: `"${version}"`, ...options.headers };
    return { '~portico': 'reply', status, message: options.message ?? 'ok', headers: headers ?? {}, data };
}

function versionOf(data: unknown): number | undefined {
    if (typeof data !== 'object' || data === null || Array.isArray(data)) {
        return undefined;
    }
    const { version } = data as { version?: unknown };
    return typeof version === 'number' ? version : undefined;
}
