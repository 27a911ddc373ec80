/** Where handlers tell the engine to connect to. */

/** With a placeholder under one of these keys, each visitor could choose the target: the admin socket too. */
const targetKeys = new Set([
    'dial',
    'upstreams',
    'dynamic_upstreams',
    'lookup_srv',
    'network_proxy',
    'forward_proxy_url',
    'resolver',
    'resolvers',
    'addresses'
]);
/** Of these, the value is or holds the name of a host. */
const hostKeys = new Set(['dial', 'lookup_srv', 'name', 'url', 'forward_proxy_url', 'addresses']);

/** Whether the values under a key, in canonical spelling, say where the engine connects to. */
export function isTargetKey(name: string): boolean {
    return targetKeys.has(name);
}

/** Why a text may not stand in a target; null when it may. @param name - its key in canonical spelling */
export function targetFault(
    name: string,
    text: string,
    mayReach: ((host: string) => boolean) | null
): string | null {
    if (text.includes('{')) {
        return 'may not have a placeholder: it says where the engine connects to';
    }
    if (mayReach === null || !hostKeys.has(name)) {
        return null;
    }
    const host = hostOf(text);
    return host !== null && mayReach(host)
        ? null
        : `leads to ${host ?? text}, which no grant of the plugin covers (capability network)`;
}

/** Host of a URL, or of an address as the engine takes it: `host:port`, `tcp/host:port`, `[::1]:80`. */
export function hostOf(text: string): string | null {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
        return URL.parse(text)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? null;
    }
    const [, bracketed, plain] =
        /^(?:(?:tcp|udp)[46]?\/)?(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/i.exec(text) ?? [];
    return bracketed ?? plain ?? null;
}
