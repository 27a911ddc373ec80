/** A stream of a generated page. */
import { address, type CallOptions } from '../../api/client.ts';
import { Log } from '../../kit/display/log.tsx';
import type { Operation, Params } from '../operations.ts';
import { pathOf } from '../run.ts';

/** Follows a stream while it is shown. */
export function Live({
    operation,
    params = {},
    query = {}
}: {
    readonly operation: Operation;
    readonly params?: Params;
    readonly query?: CallOptions['query'];
}) {
    const canFollow = operation.query.some(({ name }) => name === 'follow');
    const path = address(pathOf(operation, params), { ...(canFollow ? { follow: true } : {}), ...query });
    return (
        <section class="card">
            <h2>{operation.title}</h2>
            <Log path={path} title={operation.title} />
        </section>
    );
}
