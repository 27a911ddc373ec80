/** Takes single apps over by hand, into the source `local`. */
import { checkAppDocument } from '../catalogue/app-document.ts';
import { fail } from '../errors.ts';
import type { FileStore } from './files.ts';
import { convertCasaos } from './formats/casaos.ts';
import { idOf } from './formats/convert.ts';
import { type Converted, convertRuntipi } from './formats/runtipi.ts';
import { appOf } from './repository.ts';
import type { Sources } from './sources.ts';

/** Files of another format that become an app of this store. */
export interface ImportInput {
    readonly kind: 'runtipi' | 'casaos' | 'compose';
    readonly name: string;
    /** Texts by name. */
    readonly files: Readonly<Record<string, string>>;
}

/**
 * Takes an app over. The same name again replaces it.
 *
 * @throws IMPORT_UNSUPPORTED 42256, INDEX_INVALID 42250
 */
export async function importApp(
    { sources, files }: { readonly sources: Sources; readonly files: FileStore },
    input: ImportInput
): Promise<{ readonly id: string; readonly warnings: readonly string[] }> {
    const { document, warnings } = convert(input);
    const id = idOf(input.name);
    if (id === '') {
        throw fail.IMPORT_UNSUPPORTED({ why: 'the name has no letter', keys: ['name'] });
    }
    const converted = { document: checkAppDocument({ ...document, id }), warnings };
    await sources.local();
    const { app, file } = appOf(converted);
    await files.add(file);
    await sources.addLocal(app);
    return { id, warnings };
}

function convert({ kind, name, files }: ImportInput): Converted {
    if (kind === 'runtipi') {
        return convertRuntipi(new Map(Object.entries(files)));
    }
    const text =
        files['docker-compose.yml'] ??
        files['docker-compose.yaml'] ??
        files['compose.yaml'] ??
        files['compose.yml'];
    if (text === undefined) {
        throw fail.IMPORT_UNSUPPORTED({
            why: 'there is no docker-compose.yml',
            keys: ['docker-compose.yml']
        });
    }
    return convertCasaos(text, name, { plain: kind === 'compose' });
}
