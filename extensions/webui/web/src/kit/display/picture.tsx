/** A picture that only the logged-in user may see: the page asks for it with its token, which an address cannot carry. */
import { useQuery } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';

import { exchange } from '../../api/client.ts';

/** Shows it as decoration; its place stays empty until it is there. @param path - of the picture in the API @param size - width and height, in pixels */
export function Picture({ path, size }: { readonly path: string; readonly size: number }) {
    const { data } = useQuery<Blob>({
        queryKey: ['picture', path],
        queryFn: async ({ signal }) => (await exchange('GET', path, { signal })).blob(),
        staleTime: Infinity
    });
    const [address, setAddress] = useState<string | null>(null);
    useEffect(() => {
        if (data === undefined) {
            return undefined;
        }
        const made = URL.createObjectURL(data);
        setAddress(made);
        return () => URL.revokeObjectURL(made);
    }, [data]);
    return address === null ? (
        <span class="picture" style={{ inlineSize: `${size}px`, blockSize: `${size}px` }} />
    ) : (
        <img class="picture" src={address} alt="" width={size} height={size} />
    );
}
