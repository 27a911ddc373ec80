/** Takes apps of Runtipi over: `config.json`, `docker-compose.json` or `.yml`, and `metadata/`. */
import { type AppDocument, checkAppDocument } from '../../catalogue/app-document.ts';
import { isTree, type Tree } from '../../catalogue/yaml.ts';
import { fail } from '../../errors.ts';
import { readJson, readYaml, replaceVariables, textAt, Volumes, writeCompose } from './convert.ts';

/** Files of one app by their names, such as `metadata/description.md`. */
export type AppFiles = ReadonlyMap<string, string>;

/** An app that was taken over. */
export interface Converted {
    readonly document: AppDocument;
    readonly warnings: readonly string[];
}

const dataFolder = /^\$\{?APP_DATA_DIR\}?(?=\/|$)/;
const variables = {
    APP_HOST: '${APP_DOMAIN}',
    LOCAL_DOMAIN: '${APP_DOMAIN}',
    APP_PROTOCOL: 'http',
    TZ: 'Etc/UTC',
    NETWORK_INTERFACE: '127.0.0.1',
    INTERNAL_IP: '127.0.0.1'
};
const architectureOf: Readonly<Record<string, string>> = {
    arm64: 'arm64',
    amd64: 'amd64',
    x86_64: 'amd64',
    arm: 'arm'
};

/** Turns the files of an app into a document. @throws IMPORT_UNSUPPORTED 42256 with the keys that cannot be carried out */
export function convertRuntipi(files: AppFiles): Converted {
    const config = readJson(files.get('config.json') ?? '', 'config.json');
    const warnings: string[] = [];
    const json = files.get('docker-compose.json');
    const yaml = files.get('docker-compose.yml');
    if (json === undefined && yaml === undefined) {
        throw fail.IMPORT_UNSUPPORTED({
            why: 'there is no docker-compose.json or .yml',
            keys: ['docker-compose.json']
        });
    }
    const volumes = new Volumes([dataFolder]);
    const made =
        json === undefined
            ? fromCompose(readYaml(yaml ?? '', 'docker-compose.yml'), config, volumes)
            : fromDynamic(readJson(json, 'docker-compose.json'), volumes);
    if (volumes.unsupported.length > 0) {
        throw fail.IMPORT_UNSUPPORTED({ why: volumes.unsupported.join(', '), keys: volumes.unsupported });
    }
    if (json === undefined) {
        warnings.push('The port of the app is a guess: compare it with the app’s own documentation');
    }
    const compose = replaceVariables({ services: made.services, volumes: volumes.declared() }, variables);
    const document = checkAppDocument({
        ...aboutOf(config, files),
        form: formOf(config),
        compose: writeCompose(compose),
        images: {},
        main: made.main
    });
    return { document, warnings };
}

interface Made {
    readonly services: Tree;
    readonly main: { readonly service: string; readonly port: number };
}

/** The compose file of Runtipi's own form, where services are a list. */
function fromDynamic(tree: Tree, volumes: Volumes): Made {
    const list = Array.isArray(tree['services']) ? tree['services'].filter(isTree) : [];
    const services: Tree = {};
    let main: Made['main'] | null = null;
    for (const service of list) {
        const name = textAt(service, 'name');
        const port = Number(textAt(service, 'internalPort'));
        const isMain = service['isMain'] === true || list.length === 1;
        if (isMain && port > 0) {
            main = { service: name, port };
        }
        services[name] = dynamicService(service, isMain && port > 0 ? port : null, volumes);
    }
    if (main === null) {
        throw fail.IMPORT_UNSUPPORTED({
            why: 'no service is the main one with a port',
            keys: ['services.isMain']
        });
    }
    return { services, main };
}

const carried: Readonly<Record<string, string>> = {
    command: 'command',
    entrypoint: 'entrypoint',
    user: 'user',
    hostname: 'hostname',
    workingDir: 'working_dir',
    stopGracePeriod: 'stop_grace_period',
    stopSignal: 'stop_signal',
    shmSize: 'shm_size',
    tty: 'tty',
    stdinOpen: 'stdin_open',
    readOnly: 'read_only',
    privileged: 'privileged',
    capAdd: 'cap_add',
    capDrop: 'cap_drop',
    devices: 'devices',
    securityOpt: 'security_opt',
    sysctls: 'sysctls',
    ulimits: 'ulimits',
    networkMode: 'network_mode',
    pid: 'pid',
    dns: 'dns',
    extraHosts: 'extra_hosts',
    dependsOn: 'depends_on',
    labels: 'labels'
};
const known = new Set([
    'name',
    'image',
    'internalPort',
    'isMain',
    'environment',
    'volumes',
    'addPorts',
    'healthCheck',
    'deploy'
]);

function dynamicService(service: Tree, mainPort: number | null, volumes: Volumes): Tree {
    const unknown = Object.keys(service).filter((key) => !known.has(key) && !Object.hasOwn(carried, key));
    if (unknown.length > 0) {
        throw fail.IMPORT_UNSUPPORTED({ why: unknown.join(', '), keys: unknown });
    }
    const lists = (key: string): Tree[] => (Array.isArray(service[key]) ? service[key].filter(isTree) : []);
    const ports = [
        ...(mainPort === null ? [] : [`\${APP_PORT}:${mainPort}`]),
        ...lists('addPorts').map(
            (port) =>
                `${textAt(port, 'hostPort')}:${textAt(port, 'containerPort')}${port['udp'] === true && port['tcp'] !== true ? '/udp' : ''}`
        )
    ];
    const mounts = lists('volumes').map((mount) =>
        volumes.mount(
            textAt(mount, 'hostPath'),
            `${textAt(mount, 'containerPath')}${mount['readOnly'] === true ? ':ro' : ''}`
        )
    );
    const made: Tree = { image: textAt(service, 'image'), restart: 'unless-stopped' };
    for (const [from, to] of Object.entries(carried)) {
        if (service[from] !== undefined) {
            made[to] = service[from];
        }
    }
    return {
        ...made,
        ...(service['environment'] === undefined
            ? {}
            : { environment: environmentOf(service['environment']) }),
        ...(ports.length === 0 ? {} : { ports }),
        ...(mounts.length === 0 ? {} : { volumes: mounts }),
        ...(isTree(service['healthCheck']) ? { healthcheck: healthOf(service['healthCheck']) } : {}),
        ...(isTree(service['deploy']) ? { deploy: service['deploy'] } : {})
    };
}

/** A mapping, or in newer files a list of `{ key, value }`. */
function environmentOf(given: unknown): Tree {
    if (!Array.isArray(given)) {
        return isTree(given) ? given : {};
    }
    return Object.fromEntries(given.filter(isTree).map((each) => [textAt(each, 'key'), each['value'] ?? '']));
}

function healthOf(check: Tree): Tree {
    const { test, interval, timeout, retries, startPeriod } = check;
    return {
        test,
        ...(interval === undefined ? {} : { interval }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(retries === undefined ? {} : { retries }),
        ...(startPeriod === undefined ? {} : { start_period: startPeriod })
    };
}

/** A usual compose file: networks and labels of Runtipi's own proxy go. */
function fromCompose(tree: Tree, config: Tree, volumes: Volumes): Made {
    const given = isTree(tree['services']) ? tree['services'] : {};
    const services: Tree = {};
    let main: Made['main'] | null = null;
    for (const [name, service] of Object.entries(given)) {
        if (!isTree(service)) {
            continue;
        }
        const {
            networks: _networks,
            labels: _labels,
            container_name: _name,
            volumes: mounts,
            ...rest
        } = service;
        const ports = Array.isArray(service['ports']) ? service['ports'] : [];
        for (const port of ports) {
            const [, inside] = /\$\{APP_PORT\}:(\d+)/.exec(String(port)) ?? [];
            if (inside !== undefined) {
                main = { service: name, port: Number(inside) };
            }
        }
        services[name] = {
            ...rest,
            ...(Array.isArray(mounts)
                ? {
                      volumes: mounts.map((mount) => {
                          const [source = '', ...others] = String(mount).split(/:(?![-?+])/);
                          return volumes.mount(source, others.join(':'));
                      })
                  }
                : {})
        };
    }
    const [first] = Object.keys(services);
    const port = Number(textAt(config, 'port'));
    if (main === null && (first === undefined || !(port > 0))) {
        throw fail.IMPORT_UNSUPPORTED({ why: 'no service publishes ${APP_PORT}', keys: ['ports'] });
    }
    return { services, main: main ?? { service: first ?? '', port } };
}

function aboutOf(config: Tree, files: AppFiles): Tree {
    const list = (key: string): string[] => (Array.isArray(config[key]) ? config[key].map(String) : []);
    return {
        id: textAt(config, 'id'),
        version: textAt(config, 'version') || '0',
        title: { en: textAt(config, 'name').slice(0, 200) },
        tagline: { en: textAt(config, 'short_desc').slice(0, 500) },
        description: { en: files.get('metadata/description.md') ?? textAt(config, 'description') },
        website: textAt(config, 'website') || textAt(config, 'source') || null,
        license: null,
        categories: list('categories'),
        architectures: list('supported_architectures').map((each) => architectureOf[each] ?? each)
    };
}

function formOf(config: Tree): Tree[] {
    const fields = Array.isArray(config['form_fields']) ? config['form_fields'].filter(isTree) : [];
    return fields.map((field) => ({
        name: textAt(field, 'env_variable'),
        type: field['type'],
        label: textAt(field, 'label'),
        hint: textAt(field, 'hint'),
        placeholder: textAt(field, 'placeholder'),
        required: field['required'] === true,
        ...pick(field, ['default', 'min', 'max', 'regex', 'options', 'encoding'], field['type']),
        ...(field['pattern_error'] === undefined ? {} : { patternError: field['pattern_error'] })
    }));
}

function pick(field: Tree, keys: readonly string[], type: unknown): Tree {
    return Object.fromEntries(
        keys
            .filter(
                (key) =>
                    field[key] !== undefined &&
                    field[key] !== null &&
                    !(key === 'default' && type === 'random')
            )
            .map((key) => [key, field[key]])
    );
}
