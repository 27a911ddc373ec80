/** Programs that listen, as `ss` tells. */
import { errors, isFailure } from '@portico/sdk';

import { formatAddress, type Interval, readPeer } from '../address/interval.ts';
import { fail } from '../errors.ts';
import type { LiveConnection } from '../ruleset/ruleset.ts';
import type { Ctx } from '../settings.ts';

const mostConnections = 100_000;

/** A program that listens. */
export interface Listener {
    readonly protocol: 'tcp' | 'udp';
    /** Null: every address of that family, or of both. */
    readonly address: Interval | null;
    /** As `ss` writes it, without the interface. */
    readonly text: string;
    readonly port: number;
    readonly pid: number | null;
    readonly program: string | null;
    /** The number of the user; null where it is not known. */
    readonly uid: string | null;
}

/** Lists programs that listen for TCP and UDP. @throws TOOL_MISSING 50302 */
export async function listListeners(ctx: Ctx): Promise<readonly Listener[]> {
    const result = await ctx
        .exec('ss', ['-H', '-l', '-n', '-t', '-u', '-p', '-e'], {
            timeoutSeconds: 10,
            maxOutputBytes: 8 * 2 ** 20
        })
        .catch((error: unknown) => {
            throw isFailure(error) && error.reason === 'TOOL_MISSING'
                ? errors.toolMissing('ss', 'apt-get install iproute2')
                : error;
        });
    if (result.code !== 0) {
        throw fail.TOOL_FAILED({
            tool: 'ss',
            message: result.timedOut ? 'it gave no answer' : result.stderr.slice(0, 200)
        });
    }
    return parseListeners(result.stdout);
}

/** TCP connections that stand, for rules that must not cut them; none where `ss` cannot tell. */
export async function listConnections(ctx: Ctx): Promise<readonly LiveConnection[]> {
    try {
        const args = ['-H', '-n', '-t', 'state', 'established'];
        const { stdout } = await ctx.exec('ss', args, { timeoutSeconds: 10, maxOutputBytes: 32 * 2 ** 20 });
        return parseConnections(stdout).slice(0, mostConnections);
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        ctx.log.warn('ss could not list the connections that stand: rules may cut them', {
            reason: error.reason
        });
        return [];
    }
}

/** Reads lines of `ss -H -n -t state established`. */
export function parseConnections(text: string): readonly LiveConnection[] {
    return text.split('\n').flatMap((line) => {
        const [, own = '', peer = ''] = /^\s*\d+\s+\d+\s+(\S+)\s+(\S+)/.exec(line) ?? [];
        const [, ownPort] = /:(\d{1,5})$/.exec(own) ?? [];
        const [, host = '', peerPort] = /^(.*):(\d{1,5})$/.exec(peer) ?? [];
        const address = readPeer(host.replace(/%[^\]]*/, '').replace(/^\[(.*)\]$/, '$1'));
        return ownPort === undefined || peerPort === undefined || address === null
            ? []
            : [
                  {
                      family: address.family,
                      peer: formatAddress(address.family, address.from),
                      peerPort: Number(peerPort),
                      ownPort: Number(ownPort)
                  }
              ];
    });
}

/** Reads lines of `ss -H -l -n -t -u -p -e`; lines of another form are left out. */
export function parseListeners(text: string): readonly Listener[] {
    return text.split('\n').flatMap((line) => {
        const [, protocol, local = ''] = /^(tcp|udp)\s+\S+\s+\d+\s+\d+\s+(\S+)\s/.exec(line) ?? [];
        const [, host = '', port] = /^(.*):(\d{1,5})$/.exec(local) ?? [];
        if (protocol === undefined || port === undefined) {
            return [];
        }
        const plain = host.replace(/%[^\]]*/, '').replace(/^\[(.*)\]$/, '$1');
        const [, program = null, pid] = /users:\(\("((?:[^"\\]|\\.)*)",pid=(\d+)/.exec(line) ?? [];
        const [, uid] = /\buid:(\d+)/.exec(line) ?? [];
        return [
            {
                protocol: protocol as 'tcp' | 'udp',
                address: plain === '*' || plain === '0.0.0.0' || plain === '::' ? null : readPeer(plain),
                text: plain === '*' ? '::' : plain,
                port: Number(port),
                pid: pid === undefined ? null : Number(pid),
                program,
                // `ss` leaves out the number of root.
                uid: uid ?? '0'
            }
        ];
    });
}
