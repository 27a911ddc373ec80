/** The engine's access log, as a plugin reads it. */

/** One request that the engine has answered, without its query string, its headers and its body. */
export interface AccessRecord {
    /** When the answer was complete. */
    readonly at: Date;
    /** The host that was asked; null when no host has that name now. */
    readonly hostId: number | null;
    readonly method: string;
    /** At most 2,048 characters. */
    readonly path: string;
    /** Of the answer; 0 when the visitor left before there was one. */
    readonly status: number;
    /** Of the answer's body. */
    readonly bytes: number;
    /** Milliseconds from the request to the end of the answer. */
    readonly ms: number;
    /** The address that connected to the engine: the visitor's, or that of a proxy in front of it. */
    readonly ip: string;
    /** `User-Agent`, at most 512 characters; null without one. */
    readonly agent: string | null;
    /**
     * At least so many records before this one are missing: the plugin read too slowly, or their lines could not be read. Usually 0.
     */
    readonly dropped: number;
}

/** Where to begin, and how to end. */
export interface AccessLogOptions {
    /** Begins with the records of this time, as far as they are kept; default: with those to come. */
    readonly from?: Date | null;
    readonly signal?: AbortSignal | null;
}
