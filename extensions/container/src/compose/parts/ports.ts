/** Ports of a compose file. One without an address is published on 127.0.0.1. */
import { isIP } from 'node:net';

import type { Port } from '../../spec/spec.ts';
import type { Problems } from '../problems.ts';
import { Fields, isTree, type Path, textOf } from '../reader.ts';

const protocols = ['tcp', 'udp', 'sctp'] as const;
const mostPorts = 1_000;

/** Reads the key `ports` of a service. */
export function readPorts(service: Fields): readonly Port[] {
    const value = service.raw('ports');
    if (value === undefined || value === null) {
        return [];
    }
    if (!Array.isArray(value)) {
        service.problems.error(service.at('ports'), 'This is a list');
        return [];
    }
    const ports = value.flatMap((item, index) => {
        const path = [...service.at('ports'), index];
        return isTree(item)
            ? readLong(new Fields(item, path, service.problems))
            : readShort(textOf(item, path, service.problems) ?? '', path, service.problems);
    });
    if (ports.length > mostPorts) {
        service.problems.error(service.at('ports'), `A service has at most ${mostPorts} ports`);
        return [];
    }
    return ports;
}

function readLong(fields: Fields): readonly Port[] {
    const target = fields.count('target', 1);
    const published = fields.text('published');
    const hostIp = fields.text('host_ip') ?? '';
    const protocol = fields.word('protocol', protocols) ?? 'tcp';
    fields.word('mode', ['host', 'ingress']);
    fields.text('name');
    fields.text('app_protocol');
    fields.close();
    if (target === null) {
        fields.problems.error(fields.path, 'A port has a target');
        return [];
    }
    return combine(
        { ip: hostIp, host: published ?? '', container: String(target), protocol },
        fields.path,
        fields.problems
    );
}

/** `[address:][host:]container[/protocol]`, where ports may be ranges. */
function readShort(text: string, path: Path, problems: Problems): readonly Port[] {
    const [, rest = '', protocol = 'tcp'] = /^(.*?)(?:\/([a-z]+))?$/.exec(text) ?? [];
    if (!(protocols as readonly string[]).includes(protocol)) {
        problems.error(path, `${protocol} is no protocol`);
        return [];
    }
    const [, ip, host, container] =
        /^(?:(?:(\[[0-9a-fA-F:.]+\]|[0-9.]+|[0-9a-fA-F:.]*::[0-9a-fA-F:.]*):)?([0-9-]*):)?([0-9-]+)$/.exec(
            rest
        ) ?? [];
    if (container === undefined) {
        problems.error(path, 'A port is [address:][host:]container[/protocol]');
        return [];
    }
    return combine(
        {
            ip: (ip ?? '').replace(/^\[|\]$/g, ''),
            host: host ?? '',
            container,
            protocol: protocol as Port['protocol']
        },
        path,
        problems
    );
}

function combine(
    {
        ip,
        host,
        container,
        protocol
    }: {
        readonly ip: string;
        readonly host: string;
        readonly container: string;
        readonly protocol: Port['protocol'];
    },
    path: Path,
    problems: Problems
): readonly Port[] {
    const hostIp = ip === '' ? '127.0.0.1' : ip;
    if (isIP(hostIp) === 0) {
        problems.error(path, `${hostIp} is no address`);
        return [];
    }
    const inside = rangeOf(container, path, problems);
    const outside = host === '' ? [] : rangeOf(host, path, problems);
    if (host !== '' && outside.length !== inside.length) {
        problems.error(path, 'Both ranges of a port have the same length');
        return [];
    }
    return inside.map((containerPort, index) => ({
        containerPort,
        hostPort: outside[index] ?? null,
        hostIp,
        protocol
    }));
}

function rangeOf(text: string, path: Path, problems: Problems): readonly number[] {
    const [, from = '', to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
    const [first, last] = [Number(from), Number(to)];
    if (from === '' || first < 1 || last > 65_535 || last < first || last - first >= mostPorts) {
        problems.error(path, `${text} is no port and no range of ports`);
        return [];
    }
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
