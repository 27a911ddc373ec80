/** Reads what restic prints: JSON, one document or one list a line. */

/** One JSON document that restic printed on a line; its members are checked where they are read. */
export type Document = Readonly<Record<string, unknown>>;

const keptSaid = 8_192;
/** The longest line that is read as a document: the list of all snapshots is one line. */
const longestLine = 256 * 1024 * 1024;

/** How an answer is read. */
export interface ReadOptions {
    /** Gets each line that is no JSON. */
    onLine?(line: string): void;
    /** The answer is one document over many lines. */
    readonly isWhole?: boolean;
}

/** Hands over each document as it comes. */
export async function readDocuments(
    stream: AsyncIterable<Uint8Array>,
    take: (document: Document) => void,
    { onLine = () => undefined, isWhole = false }: ReadOptions = {}
): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    const takeLine = (line: string): void => {
        const documents = documentsIn(line);
        if (documents === null) {
            onLine(line.trim());
        } else {
            documents.forEach(take);
        }
    };
    for await (const chunk of stream) {
        const text = rest + decoder.decode(chunk, { stream: true });
        const lines = isWhole ? [text] : text.split('\n');
        rest = (lines.pop() ?? '').slice(0, longestLine);
        lines.forEach(takeLine);
    }
    takeLine(rest + decoder.decode());
}

/** The end of what a program says. */
export async function readEnd(
    stream: AsyncIterable<Uint8Array>,
    heard: () => void = () => undefined
): Promise<string> {
    const decoder = new TextDecoder();
    let said = '';
    for await (const chunk of stream) {
        heard();
        said = (said + decoder.decode(chunk, { stream: true })).slice(-keptSaid);
    }
    return said;
}

/** The documents of a line; null when it is no JSON, as the progress that some commands write. */
function documentsIn(line: string): readonly Document[] | null {
    if (!/^\s*(\{|\[\s*[\]{])/.test(line)) {
        return null;
    }
    try {
        const parsed = JSON.parse(line) as Document | readonly Document[];
        return Array.isArray(parsed) ? (parsed as readonly Document[]) : [parsed as Document];
    } catch {
        return null;
    }
}
