/** Why a release does not serve. */
import { useDocument } from '../../api/document.ts';
import { operationsOf } from '../../generated/operations.ts';
import { plain } from '../../schema/schema.ts';

/** The reason in the words that the plugin's own list has for it; the reason itself until they are read. */
export function Why({ reason }: { readonly reason: string | null }) {
    const { data } = useDocument('deploy', reason !== null);
    if (reason === null) {
        return null;
    }
    const list =
        data === undefined
            ? undefined
            : operationsOf(data, 'deploy').find(({ id }) => id === 'deploy.deployments');
    const { choices } = plain(list?.answer.items?.properties?.['reason'] ?? {});
    return (
        <p class="failure" title={reason}>
            {choices.find(({ value }) => value === reason)?.title ?? reason}
        </p>
    );
}
