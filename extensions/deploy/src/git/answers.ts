/** What a server answers, in bounded space. */

/** Reads an answer; null where it has more bytes. */
export async function readBytes(answer: Response, mostBytes: number): Promise<Buffer | null> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
        bytes += chunk.byteLength;
        if (bytes > mostBytes) {
            return null;
        }
        chunks.push(chunk);
    }
    return Buffer.concat(chunks);
}

/** Reads an answer in JSON; null where it is none, or has more bytes. */
export async function readJson(answer: Response, mostBytes: number): Promise<unknown> {
    try {
        const bytes = await readBytes(answer, mostBytes);
        return bytes === null ? null : (JSON.parse(bytes.toString()) as unknown);
    } catch {
        return null;
    }
}
