/** What one plugin may do: what its manifest asks for and an admin granted, checked at every use. */
import { boundaryErrors } from './failures.ts';

/** What a manifest asks for, and what an admin grants of it. */
export interface Capabilities {
    readonly exec?: readonly string[] | undefined;
    readonly users?: readonly string[] | undefined;
    readonly files?: readonly string[] | undefined;
    readonly network?: readonly string[] | undefined;
    readonly sockets?: readonly string[] | undefined;
    readonly hosts?: 'own' | 'read' | 'write' | undefined;
    readonly certificates?: 'read' | 'write' | undefined;
    readonly api?:
        | { readonly read?: readonly string[] | undefined; readonly write?: readonly string[] | undefined }
        | undefined;
    readonly collect?: readonly string[] | undefined;
    readonly taps?: readonly string[] | undefined;
    readonly public?: readonly string[] | undefined;
    readonly panel?: readonly ('listeners' | 'folders' | 'rehearse')[] | undefined;
    readonly services?: true | undefined;
    readonly logs?: readonly 'access'[] | undefined;
    readonly pages?: true | undefined;
    readonly direct?: readonly ('exec' | 'network' | 'files' | 'native')[] | undefined;
}

/**
 * Whether an entry of a list of programs is all that another one names. `*` alone is anything; inside a name or path it stands for any
 * text without a slash, so it never leads to another folder.
 */
export function coversProgram(pattern: string, program: string): boolean {
    if (pattern === '*' || pattern === program) {
        return true;
    }
    const [wanted, given] = [pattern.split('/'), program.split('/')];
    return (
        program !== '*' &&
        wanted.length === given.length &&
        wanted.every((part, index) => {
            const name = given[index] ?? '';
            return part === name || (name !== '.' && name !== '..' && coversName(part, name));
        })
    );
}

/** Matches from left to right, each text at its first place, so that no pattern can take long. */
function coversName(pattern: string, name: string): boolean {
    const [first = '', ...texts] = pattern.split('*');
    const last = texts.pop();
    if (last === undefined || !name.startsWith(first)) {
        return false;
    }
    let at = first.length;
    for (const text of texts) {
        const found = name.indexOf(text, at);
        if (found < 0) {
            return false;
        }
        at = found + text.length;
    }
    return name.endsWith(last) && name.length - last.length >= at;
}

type Lists =
    'exec' | 'users' | 'files' | 'network' | 'sockets' | 'collect' | 'taps' | 'public' | 'logs' | 'panel';

/** The capabilities that a plugin has: those that its manifest asks for and an admin granted. */
export class Grants {
    readonly plugin: string;
    readonly #asked: Capabilities;
    readonly #granted: () => Capabilities;
    readonly #refused: (capability: string) => void;

    /** @param refused - is called for each use that was refused */
    constructor(
        plugin: string,
        asked: Capabilities,
        granted: () => Capabilities,
        refused: (capability: string) => void = () => undefined
    ) {
        this.plugin = plugin;
        this.#asked = asked;
        this.#granted = granted;
        this.#refused = refused;
    }

    /** The granted entries of a list. An entry counts when the manifest asks for it, or for `*`, which an admin may narrow to anything. */
    list(name: Lists): readonly string[] {
        const asked: readonly string[] = this.#asked[name] ?? [];
        const granted: readonly string[] = this.#granted()[name] ?? [];
        if (name === 'exec') {
            const within = (entries: readonly string[], patterns: readonly string[]): readonly string[] =>
                entries.filter((entry) => patterns.some((pattern) => coversProgram(pattern, entry)));
            return [...new Set([...within(granted, asked), ...within(asked, granted)])];
        }
        return asked.includes('*')
            ? granted
            : granted.includes('*')
              ? asked
              : granted.filter((entry) => asked.includes(entry));
    }

    has(name: Lists, entry: string): boolean {
        const list = this.list(name);
        return name === 'exec'
            ? list.some((pattern) => coversProgram(pattern, entry))
            : list.includes('*') || list.includes(entry);
    }

    /** @throws CAPABILITY_MISSING 50305 */
    require(name: Lists, entry: string): void {
        if (!this.has(name, entry)) {
            throw this.missing(`${name}: ${entry}`);
        }
    }

    get hosts(): 'own' | 'read' | 'write' | null {
        const [asked, granted] = [this.#asked.hosts, this.#granted().hosts];
        return asked === undefined || granted === undefined
            ? null
            : asked === granted
              ? granted
              : asked === 'write'
                ? granted
                : granted === 'write'
                  ? asked
                  : null;
    }

    get certificates(): 'read' | 'write' | null {
        const [asked, granted] = [this.#asked.certificates, this.#granted().certificates];
        return asked === undefined || granted === undefined ? null : asked === 'read' ? 'read' : granted;
    }

    /** Whether a route of the catalogue may be called. */
    api(id: string, effect: 'read' | 'write' | 'destructive'): boolean {
        const side = effect === 'read' ? 'read' : 'write';
        const [asked, granted] = [this.#asked.api?.[side] ?? [], this.#granted().api?.[side] ?? []];
        return (asked.includes('*') || asked.includes(id)) && (granted.includes('*') || granted.includes(id));
    }

    get services(): boolean {
        return this.#asked.services === true && this.#granted().services === true;
    }

    get pages(): boolean {
        return this.#asked.pages === true && this.#granted().pages === true;
    }

    /** Reports that a use was refused, and returns the error to throw. */
    missing(capability: string): Error {
        this.#refused(capability);
        return boundaryErrors.CAPABILITY_MISSING({ plugin: this.plugin, capability });
    }
}
