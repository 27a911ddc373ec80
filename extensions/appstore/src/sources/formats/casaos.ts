/** Takes apps of CasaOS over: compose files with `x-casaos`. Single compose files without it come the same way. */
import { checkAppDocument } from '../../catalogue/app-document.ts';
import { isTree, type Tree } from '../../catalogue/yaml.ts';
import { fail } from '../../errors.ts';
import { idOf, readYaml, replaceVariables, textAt, Volumes, writeCompose } from './convert.ts';
import type { Converted } from './runtipi.ts';

const dataFolders = [
    /^\/DATA\/AppData\/\$(?:\{AppID\}|AppID|\{APP_ID\}|APP_ID)(?=\/|$)/,
    /^\/DATA\/AppData\/[^/$]+(?=\/|$)/,
    /^\.(?=\/)/
];
const variables = { AppID: '${APP_NAME}', PUID: '1000', PGID: '1000', TZ: 'Etc/UTC' };
const proxyKeys = new Set(['container_name', 'network_mode']);

/** Turns a compose file into a document. @throws IMPORT_UNSUPPORTED 42256 with the keys that cannot be carried out */
export function convertCasaos(text: string, name: string, options: { readonly plain: boolean }): Converted {
    const tree = readYaml(text, 'docker-compose.yml');
    const about = isTree(tree['x-casaos']) ? tree['x-casaos'] : {};
    if (!options.plain && tree['x-casaos'] === undefined) {
        throw fail.IMPORT_UNSUPPORTED({ why: 'there is no x-casaos', keys: ['x-casaos'] });
    }
    const given = isTree(tree['services']) ? tree['services'] : {};
    const main = mainOf(given, about);
    const volumes = new Volumes(dataFolders);
    const warnings: string[] = [];
    const services: Tree = {};
    for (const [service, fields] of Object.entries(given)) {
        if (isTree(fields)) {
            services[service] = convertService(fields, { main, service, volumes, warnings });
        }
    }
    if (volumes.unsupported.length > 0 && !options.plain) {
        throw fail.IMPORT_UNSUPPORTED({ why: volumes.unsupported.join(', '), keys: volumes.unsupported });
    }
    const { services: _services, volumes: declared, networks, ...rest } = tree;
    const others = Object.keys(rest).filter(
        (key) => !key.startsWith('x-') && !['name', 'version', 'configs', 'secrets'].includes(key)
    );
    if (others.length > 0) {
        throw fail.IMPORT_UNSUPPORTED({ why: others.join(', '), keys: others });
    }
    const compose = replaceVariables(
        {
            services,
            volumes: { ...volumes.declared(), ...(isTree(declared) ? declared : {}) },
            ...(options.plain && networks !== undefined ? { networks } : {}),
            ...(rest['configs'] === undefined ? {} : { configs: rest['configs'] }),
            ...(rest['secrets'] === undefined ? {} : { secrets: rest['secrets'] })
        },
        variables
    );
    const document = checkAppDocument({
        ...texts(about, name),
        id: idOf(options.plain ? name : textAt(about, 'store_app_id') || textAt(tree, 'name') || name),
        version: versionOf(services, main.service),
        website: null,
        license: null,
        form: [],
        compose: writeCompose(compose),
        images: {},
        main
    });
    return { document, warnings };
}

interface Main {
    readonly service: string;
    readonly port: number;
    readonly path: string;
}

/** The service with the pages, and its port inside: that which is published as `port_map`, or the first. */
function mainOf(services: Tree, about: Tree): Main {
    const wanted = textAt(about, 'main');
    const [first = ''] = Object.entries(services).flatMap(([name, service]) =>
        isTree(service) && portsOf(service).length > 0 ? [name] : []
    );
    const service = Object.hasOwn(services, wanted) ? wanted : first;
    const ports = isTree(services[service]) ? portsOf(services[service]) : [];
    const outside = textAt(about, 'port_map');
    const port = ports.find((each) => each.published === outside) ?? ports[0];
    if (port === undefined) {
        throw fail.IMPORT_UNSUPPORTED({ why: 'no service publishes a port', keys: ['ports'] });
    }
    const path = textAt(about, 'index');
    return { service, port: port.target, path: path.startsWith('/') ? path : '/' };
}

interface Port {
    readonly target: number;
    readonly published: string;
    readonly protocol: string;
}

function portsOf(service: Tree): readonly Port[] {
    const list = Array.isArray(service['ports']) ? service['ports'] : [];
    return list.flatMap((port): Port[] => {
        if (isTree(port)) {
            const target = Number(textAt(port, 'target'));
            return target > 0
                ? [
                      {
                          target,
                          published: textAt(port, 'published'),
                          protocol: textAt(port, 'protocol') || 'tcp'
                      }
                  ]
                : [];
        }
        const [, published = '', target, protocol = 'tcp'] =
            /^(?:(.*):)?(\d+)(?:\/(tcp|udp))?$/.exec(String(port)) ?? [];
        return target === undefined
            ? []
            : [{ target: Number(target), published: published.split(':').at(-1) ?? '', protocol }];
    });
}

interface Converting {
    readonly main: Main;
    readonly service: string;
    readonly volumes: Volumes;
    readonly warnings: string[];
}

function convertService(fields: Tree, { main, service, volumes, warnings }: Converting): Tree {
    const made: Tree = {};
    for (const [key, value] of Object.entries(fields)) {
        if (
            key.startsWith('x-') ||
            (proxyKeys.has(key) && !/^(host|container:|service:)/.test(String(value)))
        ) {
            continue;
        }
        made[key] = value;
    }
    if (Array.isArray(fields['volumes'])) {
        made['volumes'] = fields['volumes'].map((mount) => {
            if (isTree(mount)) {
                const target = `${textAt(mount, 'target')}${mount['read_only'] === true ? ':ro' : ''}`;
                return volumes.mount(textAt(mount, 'source'), target);
            }
            const [source = '', ...others] = String(mount).split(/:(?![-?+])/);
            return volumes.mount(source, others.join(':'));
        });
    }
    if (Array.isArray(fields['ports'])) {
        made['ports'] = portsOf(fields).map(({ target, published, protocol }) =>
            service === main.service && target === main.port
                ? `\${APP_PORT}:${target}`
                : `${/^\d+$/.test(published) ? published : target}:${target}${protocol === 'udp' ? '/udp' : ''}`
        );
        if (fields['ports'].length !== portsOf(fields).length) {
            warnings.push(`Ports of ${service} that are ranges were left out`);
        }
    }
    return made;
}

function texts(about: Tree, name: string): Tree {
    const byLanguage = (key: string, most: number): Tree => {
        const given = about[key];
        if (!isTree(given)) {
            return typeof given === 'string' ? { en: given.slice(0, most) } : {};
        }
        const entries = Object.entries(given).map(([tag, text]) => [
            tag.replace(/_(\w+)$/, (_all, region: string) => `-${region.toUpperCase()}`),
            String(text).slice(0, most)
        ]);
        return Object.fromEntries(
            entries.filter(([tag = '']) => /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(tag))
        );
    };
    const title = byLanguage('title', 200);
    const category = idOf(textAt(about, 'category'));
    return {
        title: Object.keys(title).length === 0 ? { en: name.slice(0, 200) } : title,
        tagline: byLanguage('tagline', 500),
        description: byLanguage('description', 100_000),
        categories: category === '' ? [] : [category],
        architectures: Array.isArray(about['architectures']) ? about['architectures'].map(String) : []
    };
}

/** The tag of the main image, which is all that a compose file says of a version. */
function versionOf(services: Tree, main: string): string {
    const service = services[main];
    const image = isTree(service) ? textAt(service, 'image') : '';
    const [, tag = '0'] = /:([^:/@]+)(?:@.*)?$/.exec(image) ?? [];
    return /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$/.test(tag) ? tag : '0';
}
