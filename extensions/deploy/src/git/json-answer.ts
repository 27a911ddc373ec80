/** What a server answers in JSON, in bounded space. */

/** Reads an answer; null where it is no JSON, or has more bytes. */
export async function readJson(answer: Response, mostBytes: number): Promise<unknown> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
        bytes += chunk.byteLength;
        if (bytes > mostBytes) {
            return null;
        }
        chunks.push(chunk);
    }
    try {
        return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
    } catch {
        return null;
    }
}
