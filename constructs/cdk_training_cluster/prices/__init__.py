"""What AWS charges: one price book, with the source and the date of each figure."""

from cdk_training_cluster.prices.book import ByRegion, Price, PriceBook, Source, SpotRange, committed_prices
from cdk_training_cluster.prices.units import UNITS, Unit

__all__ = ["UNITS", "ByRegion", "Price", "PriceBook", "Source", "SpotRange", "Unit", "committed_prices"]
