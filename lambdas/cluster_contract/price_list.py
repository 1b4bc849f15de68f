"""How the products of the AWS Price List are read.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

ADDRESS = "https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html"
REGION = "us-east-1"
"""A region that the API is in, of the partition `aws`: https://docs.aws.amazon.com/general/latest/gr/billing.html"""

_SOLD = "OnDemand"
# Local and Wavelength Zones have products of their own, under their parent's country.
_IN_A_REGION = "AWS Region"


def products_of_regions(texts: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the products of a page that are sold in a region.

    Args:
        texts: Its products as the API writes them: JSON.
    """
    for text in texts:
        product: dict[str, Any] = json.loads(text)
        if _region(product) is not None:
            yield product


def attributes(product: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a product's attributes."""
    found: Mapping[str, str] = product["product"]["attributes"]
    return found


def is_on_demand(product: Mapping[str, Any]) -> bool:
    """Say whether a product is none of another way to buy, such as a Capacity Block."""
    return attributes(product).get("marketoption", _SOLD) == _SOLD


def first_tiers(product: Mapping[str, Any]) -> Iterator[tuple[str, Decimal, date | None]]:
    """Yield region, price and date of a product: of each offer the first tier, unless it is free or not in USD."""
    region, published = _region(product), product.get("publicationDate")
    for offer in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in offer["priceDimensions"].values():
            usd = Decimal(dimension["pricePerUnit"].get("USD", 0))
            if region is not None and usd > 0 and Decimal(dimension.get("beginRange", 0)) == 0:
                yield region, usd, None if published is None else date.fromisoformat(published[:10])


def _region(product: Mapping[str, Any]) -> str | None:
    """Return the region whose product it is; of a transfer, the one that it leaves. None: it is none of a region."""
    own = attributes(product)
    for location, region in (("locationType", "regionCode"), ("fromLocationType", "fromRegionCode")):
        if own.get(location) == _IN_A_REGION:
            return own.get(region)
    return None
