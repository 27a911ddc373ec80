/** The API that authors of plugins import, as text: a page for each entry point of the SDK and of the test kit. A change of the API then shows as a change of a file. */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import ts from 'typescript';

import { root } from './markdown.ts';

/** One page as it should be. */
export interface ApiPage {
    /** Absolute. */
    readonly file: string;
    readonly text: string;
}

/** A package that has pages in its folder `api`. */
interface Package {
    /** Absolute. */
    readonly folder: string;
    /** The folder of its declarations in memory: not that of the sources, which the compiler would prefer. */
    readonly memory: string;
}

/** A module that authors import. */
interface EntryPoint {
    /** The name by which it is imported, such as `@portico/sdk/db`. */
    readonly name: string;
    /** Absolute. */
    readonly source: string;
}

const packages: readonly Package[] = ['sdk', 'sdk/testing', 'sdk/agents'].map((place) => ({
    folder: join(root, place),
    memory: join(root, place, 'declared')
}));
const printer = ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed });

/** Makes the pages from the declarations that the compiler would publish. `npm run types` checks the sources, which takes as long again. @throws Error when no declarations can be made of them */
export function apiPages(): readonly ApiPage[] {
    return packages.flatMap(pagesOf);
}

function pagesOf(one: Package): readonly ApiPage[] {
    const { folder, memory } = one;
    const entries = entryPoints(folder);
    const { options: published } = ts.parseJsonConfigFileContent(
        ts.readConfigFile(join(folder, 'tsconfig.build.json'), (path) => readFileSync(path, 'utf8')).config,
        ts.sys,
        folder
    );
    // Our other packages are read from their sources, so nothing has to be built.
    const options = { ...published, customConditions: ['portico-source'] };
    const declared = declarationsOf(one, entries, options);
    const host = ts.createCompilerHost(options);
    const program = ts.createProgram({
        rootNames: entries.map(({ source }) => declarationName(one, source)),
        options: { ...options, composite: false, noEmit: true },
        host: {
            ...host,
            directoryExists: (path) => path.startsWith(memory) || ts.sys.directoryExists(path),
            fileExists: (path) => declared.has(path) || host.fileExists(path),
            readFile: (path) => declared.get(path) ?? host.readFile(path),
            getSourceFile: (path, version, ...rest) =>
                declared.has(path)
                    ? ts.createSourceFile(path, declared.get(path) ?? '', version, true)
                    : host.getSourceFile(path, version, ...rest)
        }
    });
    const checker = program.getTypeChecker();
    return entries.map(({ name, source }) => ({
        file: join(folder, 'api', `${name.split('/').at(-1)}.api.md`),
        text: pageOf(one, name, program.getSourceFile(declarationName(one, source)), checker)
    }));
}

/** The entry points that package.json lists, except the one for hosts of plugins, which promises nothing to authors. */
function entryPoints(folder: string): readonly EntryPoint[] {
    const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name: string;
        exports: Readonly<Record<string, { readonly 'portico-source'?: string } | string>>;
    };
    return Object.entries(exports).flatMap(([path, target]) => {
        const source = typeof target === 'string' ? undefined : target['portico-source'];
        return source === undefined || path === './host'
            ? []
            : [{ name: join(name, path), source: join(folder, source) }];
    });
}

function declarationsOf(
    { folder, memory }: Package,
    entries: readonly EntryPoint[],
    options: ts.CompilerOptions
): ReadonlyMap<string, string> {
    const sources = entries.map(({ source }) => source);
    const declared = new Map<string, string>();
    const { tsBuildInfoFile: _incremental, ...rest } = options;
    const program = ts.createProgram(sources, {
        ...rest,
        composite: false,
        incremental: false,
        emitDeclarationOnly: true,
        noCheck: true,
        removeComments: true,
        sourceMap: false,
        inlineSources: false
    });
    const { diagnostics } = program.emit(undefined, (path, text) => {
        declared.set(
            path.replace(join(folder, 'dist'), memory),
            text.replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'")
        );
    });
    const wrong = diagnostics.find(({ category }) => category === ts.DiagnosticCategory.Error);
    if (wrong !== undefined) {
        throw new Error(
            `${folder} has no declarations: ${wrong.file?.fileName} ${ts.flattenDiagnosticMessageText(wrong.messageText, ' ')}`
        );
    }
    return declared;
}

function pageOf(
    one: Package,
    name: string,
    file: ts.SourceFile | undefined,
    checker: ts.TypeChecker
): string {
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    if (module === undefined) {
        throw new Error(`${name} exports nothing`);
    }
    const blocks = checker
        .getExportsOfModule(module)
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map((symbol) => {
            const target =
                (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
            return [
                ...new Set(
                    (target.declarations ?? []).map((declaration) => textOf(one, symbol.name, declaration))
                )
            ].join('\n');
        });
    return `# ${name}\n\nMade of the sources by \`npm run api\`. A line that goes or changes here breaks plugins; one that comes is a minor version.\n\n\`\`\`ts\n${blocks.join('\n\n')}\n\`\`\`\n`;
}

function textOf({ memory }: Package, name: string, declaration: ts.Declaration): string {
    const file = declaration.getSourceFile();
    const outside = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file.fileName)?.[1];
    if (outside !== undefined) {
        return `export { ${name} } from '${outside}';`;
    }
    const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    const text = printer
        .printNode(ts.EmitHint.Unspecified, statement, file)
        .replace(/^export /, '')
        .replace(/^declare /, '')
        .replaceAll(/^ *private readonly .*\n|^ *#private;\n|^ *private .*\n/gm, '');
    const own = (declaration as { readonly name?: { readonly getText?: () => string } }).name?.getText?.();
    return `${own === undefined || own === name ? '' : `// as ${name}, from ${relative(memory, dirname(file.fileName)) || 'src'}\n`}export ${text}`;
}

function declarationName({ folder, memory }: Package, source: string): string {
    return source.replace(join(folder, 'src'), memory).replace(/\.ts$/, '.d.ts');
}
