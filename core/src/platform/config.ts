/** The environment as a frozen configuration. One table says every name, its default and what it means. */
import { isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One variable of the environment. */
export interface Variable {
    readonly name: string;
    readonly default: string | null;
    readonly description: string;
}

/** Every variable that the panel reads; the documentation is made of this table. */
export const variables = [
    { name: 'PORTICO_HOST', default: '0.0.0.0', description: 'Address on which the panel listens' },
    { name: 'PORTICO_PORT', default: '39921', description: 'Port on which the panel listens' },
    {
        name: 'PORTICO_DATA_DIR',
        default: './data',
        description: 'Everything that the panel keeps; made with mode 0700'
    },
    {
        name: 'PORTICO_ADMIN_PASSWORD',
        default: null,
        description: 'Password of the first `admin`; without it one is made and printed once'
    },
    {
        name: 'PORTICO_JWT_SECRET',
        default: null,
        description: 'Signs the tokens; at least 32 bytes; without it one is made and kept in the data folder'
    },
    { name: 'PORTICO_CADDY', default: 'caddy', description: 'Binary of the proxy engine' },
    {
        name: 'PORTICO_ENGINE_HTTP_PORT',
        default: null,
        description: 'Overrides the setting `engine.httpPort`'
    },
    {
        name: 'PORTICO_ENGINE_HTTPS_PORT',
        default: null,
        description: 'Overrides the setting `engine.httpsPort`'
    },
    {
        name: 'PORTICO_ENGINE_USER',
        default: null,
        description: 'Who the engine runs as when the panel is root; without it the user `caddy`'
    },
    {
        name: 'PORTICO_PLUGIN_DIRS',
        default: 'extensions',
        description:
            'Folders of plugins that are enabled and granted what they ask for when first seen, separated by colons; relative ones from where the panel is installed; set and empty: none'
    },
    {
        name: 'PORTICO_NPM_REGISTRY',
        default: null,
        description: 'Where plugins are installed from; without it what npm is set to'
    },
    { name: 'PORTICO_SAFE_MODE', default: null, description: '`1`: no plugin is loaded' },
    {
        name: 'PORTICO_SERVICES',
        default: 'auto',
        description:
            "What keeps the services of plugins: `auto` is systemd where it is the first process and the panel is root, otherwise the panel's own supervisor; `supervisor` is always the latter"
    },
    { name: 'PORTICO_LOG_LEVEL', default: 'info', description: 'trace, debug, info, warn, error or fatal' }
] as const satisfies readonly Variable[];

type Name = (typeof variables)[number]['name'];

/** The configuration of the process, as the environment gives it. */
export interface Config {
    readonly host: string;
    readonly port: number;
    /** Absolute. */
    readonly dataDir: string;
    readonly adminPassword: string | null;
    readonly jwtSecret: string | null;
    readonly caddy: string;
    readonly engineHttpPort: number | null;
    readonly engineHttpsPort: number | null;
    readonly engineUser: string | null;
    /** Absolute folders of plugins that are trusted when first seen. */
    readonly pluginDirs: readonly string[];
    /** The folder of packages that the panel's own lie in, or have beside them. */
    readonly nodeModules: string;
    /** Null: what npm is set to. */
    readonly npmRegistry: string | null;
    readonly safeMode: boolean;
    readonly services: 'auto' | 'supervisor';
    readonly logLevel: string;
}

/** What the folders of plugins are relative to: where the panel's own packages lie, wherever it is started. */
const installationRoot = fileURLToPath(new URL('../../../', import.meta.url));

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Reads the environment. @throws Error that names the variable, its value and what is expected. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>, cwd: string): Config {
    const text = (name: Name): string | null => {
        const value = environment[name];
        return value === undefined || value === ''
            ? (variables.find((variable) => variable.name === name)?.default ?? null)
            : value;
    };
    const required = (name: Name): string => text(name) ?? '';
    const port = (name: Name, lowest: number): number | null => {
        const value = text(name);
        if (value === null) {
            return null;
        }
        const number = Number(value);
        if (!/^\d{1,5}$/.test(value) || number < lowest || number > 65535) {
            throw new Error(
                `${name} is ${JSON.stringify(value)}, but must be a port from ${lowest} to 65535`
            );
        }
        return number;
    };
    const logLevel = required('PORTICO_LOG_LEVEL');
    if (!logLevels.includes(logLevel)) {
        throw new Error(
            `PORTICO_LOG_LEVEL is ${JSON.stringify(logLevel)}, but must be one of ${logLevels.join(', ')}`
        );
    }
    const safeMode = text('PORTICO_SAFE_MODE');
    if (safeMode !== null && safeMode !== '1' && safeMode !== '0') {
        throw new Error(`PORTICO_SAFE_MODE is ${JSON.stringify(safeMode)}, but must be 1 or 0`);
    }
    const services = required('PORTICO_SERVICES');
    if (services !== 'auto' && services !== 'supervisor') {
        throw new Error(`PORTICO_SERVICES is ${JSON.stringify(services)}, but must be auto or supervisor`);
    }
    const npmRegistry = text('PORTICO_NPM_REGISTRY');
    if (npmRegistry !== null && !/^https?:$/.test(URL.parse(npmRegistry)?.protocol ?? '')) {
        throw new Error(
            `PORTICO_NPM_REGISTRY is ${JSON.stringify(npmRegistry)}, but must be the address of an npm registry, as https://registry.example`
        );
    }
    const dataDir = required('PORTICO_DATA_DIR');
    return Object.freeze({
        host: required('PORTICO_HOST'),
        port: port('PORTICO_PORT', 0) ?? 0,
        dataDir: isAbsolute(dataDir) ? dataDir : resolve(cwd, dataDir),
        adminPassword: text('PORTICO_ADMIN_PASSWORD'),
        jwtSecret: text('PORTICO_JWT_SECRET'),
        caddy: required('PORTICO_CADDY'),
        engineHttpPort: port('PORTICO_ENGINE_HTTP_PORT', 1),
        engineHttpsPort: port('PORTICO_ENGINE_HTTPS_PORT', 1),
        engineUser: text('PORTICO_ENGINE_USER'),
        pluginDirs: (environment['PORTICO_PLUGIN_DIRS'] ?? required('PORTICO_PLUGIN_DIRS'))
            .split(':')
            .filter((folder) => folder !== '')
            .map((folder) => resolve(installationRoot, folder)),
        nodeModules:
            /^.*\/node_modules(?=\/)/.exec(installationRoot)?.[0] ??
            resolve(installationRoot, 'node_modules'),
        npmRegistry,
        safeMode: safeMode === '1',
        services,
        logLevel
    });
}
