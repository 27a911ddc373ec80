/** What is used of snappyjs, which brings no types. */
declare module 'snappyjs' {
    /** Compresses into the block format of Snappy. */
    export function compress(plain: Uint8Array): Uint8Array;
    /** Reads the block format of Snappy. */
    export function uncompress(compressed: Uint8Array): Uint8Array;
}
