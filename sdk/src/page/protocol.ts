/** What a page and the panel around it say to each other: JSON-RPC 2.0 over a `MessagePort`. Types only. */

/** What the panel tells a page, at its start and whenever it changes. */
export interface PageContext {
    /** Values of CSS properties by their names, such as `--portico-accent`. `connect` sets them on the document. */
    readonly colors: Readonly<Record<string, string>>;
    readonly scheme: 'light' | 'dark';
    /** Language tag of the user, such as `en`. */
    readonly language: string;
    /** The user's permissions in this plugin, such as `read`, without the plugin's name. */
    readonly permissions: readonly string[];
    /** Whether the page is seen. A page that is not seen need not follow anything. */
    readonly visible: boolean;
    /** Where the page is shown. */
    readonly place: 'nav' | 'tab' | 'dashboard' | 'host';
    /** Id of the host that it is shown at; null for the other places. */
    readonly host: number | null;
    /** The part of the panel's address that belongs to the page; see `Panel.navigate`. */
    readonly location: string;
}

/** A request of an operation, as the page sends it. */
export interface PageRequest {
    /** As the panel's document has it, such as `hello.list`. */
    readonly operationId: string;
    /** Parameters of the path by their names. */
    readonly path?: Readonly<Record<string, string | number>>;
    readonly query?: Readonly<Record<string, unknown>>;
    /** JSON; for `upload` the bytes. */
    readonly body?: unknown;
    /** Version or entity tag that a change is made for. */
    readonly ifMatch?: string | number;
}

/** An answer of the panel's API: a refusal is one too. */
export interface PageAnswer {
    /** HTTP status. */
    readonly status: number;
    /** HTTP status × 100 plus a detail; 0 when all is well. */
    readonly code: number;
    readonly message: string;
    /** What the operation answers; a `Blob` for a download. */
    readonly data: unknown;
    /** The entity tag as it is sent in `ifMatch`; null without one. */
    readonly etag: string | null;
    /** How many rows a list has on all pages; null where it does not say. */
    readonly total: number | null;
    /** Cursor of the next page of a list; null at its end. */
    readonly next: string | null;
}

/** One event of a stream. */
export interface PageEvent {
    /** Its name; `message` for one without. */
    readonly event: string;
    readonly data: unknown;
}
